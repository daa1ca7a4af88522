/** The kinds of machines that an operator can choose. */
export const driverNames = ['local', 'kubernetes'] as const
export type DriverName = (typeof driverNames)[number]

/** Those whose machines outlive the hosts of servers: a server that starts is nobody's successor. */
export const sharedDrivers: ReadonlySet<DriverName> = new Set(['kubernetes'])
