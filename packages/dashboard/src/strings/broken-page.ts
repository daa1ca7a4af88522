export const words = {
  title: 'This page is broken.',
  hint: 'The fault is that of berth. The other pages still work.',
  reload: 'Load it again',
}
