import type { Route } from '../../route.ts'

/** The agent's requests for logins. Without schemas, as in `agent-routes.ts`. */
export const loginRoutes = {
  openLogin: { method: 'POST', path: '/login/open' },
  observeLogin: { method: 'POST', path: '/login/observe' },
  submitLogin: { method: 'POST', path: '/login/submit' },
  chooseLogin: { method: 'POST', path: '/login/choose' },
  checkLogin: { method: 'POST', path: '/login/check' },
} as const satisfies Readonly<Record<string, Route>>
