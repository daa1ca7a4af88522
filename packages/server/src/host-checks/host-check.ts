/** What a check found. A `failure` stops `berth serve`; a `warning` costs a feature or a safety margin. */
export type Verdict =
  | { readonly state: 'ok'; readonly fact: string }
  | { readonly state: 'warning' | 'failure'; readonly fact: string; readonly cure: string }

/** What the host is checked for: the settings that a server would be started with. */
export interface CheckTarget {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
}

/** One need of berth that a host may not meet; most are the same whatever the settings. */
export interface HostCheck<Target extends readonly CheckTarget[] = []> {
  readonly name: string
  run(...target: Target): Promise<Verdict>
}

export function ok(fact: string): Verdict {
  return { state: 'ok', fact }
}

/** `cure` is a command where there is one. */
export function warning(fact: string, cure: string): Verdict {
  return { state: 'warning', fact, cure }
}

export function failure(fact: string, cure: string): Verdict {
  return { state: 'failure', fact, cure }
}
