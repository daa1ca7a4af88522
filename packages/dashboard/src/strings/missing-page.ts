export const words = {
  title: 'Page not found.',
  hint: 'The address may be misspelled, or what it showed may have been deleted.',
  home: 'All sessions',
}
