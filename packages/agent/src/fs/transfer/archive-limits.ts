/**
 * Limits for uploaded archives. Downloaded archives respect the number of entries, so that they can be uploaded again.
 */
export const archiveLimits = { maxEntries: 100_000, maxUnpackedBytes: 4 * 1024 ** 3 }
