/** The kinds of machines that an operator can choose. */
export const driverNames = ['local'] as const
export type DriverName = (typeof driverNames)[number]
