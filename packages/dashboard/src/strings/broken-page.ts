export const words = {
  title: 'This page is broken.',
  hint: 'This is a bug in berth. The other pages still work.',
  reload: 'Reload',
}
