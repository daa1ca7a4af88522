export const words = {
  title: 'Sign in to berth',
  key: 'API key',
  hint: 'The first ./berth serve printed one. The key is exchanged for a cookie, and this page forgets it.',
  submit: 'Sign in',
  link: 'Signing in with the link…',
}
