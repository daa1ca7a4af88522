import type { StoredDestination } from './export-destination-store.ts'
import type { ExportLocation } from './export-target.ts'

export const windowMilliseconds = 10 * 60 * 1000

export function locationOf({ region, bucket, kms_key_id }: StoredDestination): ExportLocation {
  return { region, bucket, kmsKeyId: kms_key_id ?? undefined }
}

/** Ignores slashes around the prefix. */
export function joinKey(prefix: string, name: string): string {
  const clean = prefix.replace(/^\/+|\/+$/g, '')
  return clean === '' ? name : `${clean}/${name}`
}

/** The start of the ten-minute window that contains the time. */
export function windowOf(time: Date): Date {
  return new Date(time.getTime() - (time.getTime() % windowMilliseconds))
}

/**
 * The key of the object for a window, whose first entry is `firstSequence`. The same entries get the same key, so that
 * a repeated export overwrites them.
 */
export function objectKey(
  { id, organization_id, prefix }: StoredDestination,
  window: Date,
  firstSequence: number,
): string {
  const text = window.toISOString()
  const [date, hour] = [text.slice(0, 10), text.slice(11, 13)]
  const name = `${text.slice(0, 16).replaceAll(/[-:]/g, '')}Z-${firstSequence}.jsonl.gz`
  return joinKey(prefix, `destination_id=${id}/org_id=${organization_id}/date=${date}/hour=${hour}/${name}`)
}
