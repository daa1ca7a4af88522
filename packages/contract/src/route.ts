/** A request that a server answers, and nothing about its content: what declares that spreads the route. */
export interface Route {
  /** Absent: any. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: RoutePath
}

/** A path that ends with a slash matches everything below it. */
export type RoutePath = `/${string}` | RegExp

export function matchesPath(route: RoutePath, path: string): boolean {
  if (route instanceof RegExp) return route.test(path)
  return route.endsWith('/') ? path.startsWith(route) : path === route
}
