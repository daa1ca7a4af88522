export const words = {
  title: 'There is no such page.',
  hint: 'The address may be misspelled, or what it showed may have been deleted.',
  home: 'All sessions',
}
