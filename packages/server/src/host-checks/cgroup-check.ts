import { findHierarchies } from '../drivers/local/cgroup-hierarchies.ts'
import { type HostCheck, ok, type Verdict, warning } from './host-check.ts'

const needed = ['memory', 'pids']

export const cgroupCheck: HostCheck = {
  name: 'Control groups',
  run: async () => {
    const hierarchies = await findHierarchies()
    return judgeCgroups(
      hierarchies.flatMap(({ version, controllers }) => controllers.map((name) => ({ name, version }))),
    )
  },
}

interface Controller {
  readonly name: string
  readonly version: number
}

/** Takes the controllers with which berth may limit its machines. */
export function judgeCgroups(controllers: readonly Controller[]): Verdict {
  const missing = needed.filter((name) => !controllers.some((controller) => controller.name === name))
  if (missing.length === 0) {
    const versions = [...new Set(controllers.map(({ version }) => `v${version}`))].join(' and ')
    return ok(`${versions}, ${needed.join(' and ')} of a session are limited`)
  }
  return warning(
    `${missing.join(' and ')} of a session cannot be limited`,
    'run berth as root, or in a group of its own: systemd-run --user --scope -p Delegate=yes ./berth serve',
  )
}
