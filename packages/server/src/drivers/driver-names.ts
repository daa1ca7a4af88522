/** The kinds of machines that an operator can choose. */
export const driverNames = ['local', 'kubernetes'] as const
export type DriverName = (typeof driverNames)[number]
