export const words = {
  create: (one: string) => `New ${one}`,
  edit: (one: string) => `Edit ${one}`,
  actions: 'Actions',
  download: 'Download',
  log: 'Log',
  noneFound: 'Nothing matches.',
  noLines: 'No line yet.',
}
