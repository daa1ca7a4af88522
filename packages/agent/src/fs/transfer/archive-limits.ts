/** For archives that go into a session; those that come out keep to the number, so that they can go in again. */
export const archiveLimits = { maxEntries: 100_000, maxUnpackedBytes: 4 * 1024 ** 3 }
