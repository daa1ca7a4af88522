export const words = {
  skip: 'Skip to the content',
  brand: 'berth',
  menu: 'Menu',
  pages: 'Pages',
  project: 'Project',
  standard: 'Default project',
  theme: 'Switch between light and dark',
  signOut: 'Sign out',
  docs: 'API reference',
}
