/** The method and path of a request. Declarations of endpoints and operations spread it. */
export interface Route {
  /** When absent, any method. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: RoutePath
}

/** A path that ends with a slash matches everything below it. */
export type RoutePath = `/${string}` | RegExp

export function matchesPath(route: RoutePath, path: string): boolean {
  if (route instanceof RegExp) return route.test(path)
  return route.endsWith('/') ? path.startsWith(route) : path === route
}
