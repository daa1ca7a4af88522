export const words = {
  unknown: 'There is no such page.',
  create: (one: string) => `New ${one}`,
  edit: (one: string) => `Edit ${one}`,
  actions: 'Actions',
  download: 'Download',
  log: 'Log',
  noneFound: 'Nothing matches.',
  noLines: 'No line yet.',
}
