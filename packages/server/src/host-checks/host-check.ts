import type { ReserveConfig } from '../features/sessions/reserve/reserve-plan.ts'

/** The result of a check. A `failure` stops `berth serve`. A `warning` costs a feature or a safety margin. */
export type Verdict =
  | { readonly state: 'ok'; readonly fact: string }
  | { readonly state: 'warning' | 'failure'; readonly fact: string; readonly cure: string }

/** The settings of the server for which the host is checked. */
export interface CheckTarget {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
  readonly reserve: ReserveConfig
}

/** One requirement of berth that a host may not meet. Most do not depend on the settings. */
export interface HostCheck<Target extends readonly CheckTarget[] = []> {
  readonly name: string
  run(...target: Target): Promise<Verdict>
}

export function ok(fact: string): Verdict {
  return { state: 'ok', fact }
}

/** `cure` is a command, if there is one. */
export function warning(fact: string, cure: string): Verdict {
  return { state: 'warning', fact, cure }
}

export function failure(fact: string, cure: string): Verdict {
  return { state: 'failure', fact, cure }
}
