/** The kinds of machines that an operator can choose. */
export const driverNames = ['local', 'kubernetes'] as const
export type DriverName = (typeof driverNames)[number]

/** Drivers whose machines are independent of the hosts of servers, so that a starting server succeeds no other. */
export const sharedDrivers: ReadonlySet<DriverName> = new Set(['kubernetes'])
