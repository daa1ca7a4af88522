import { useEffect, useState } from 'react'

const units = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const

/** In the two largest units: `2 h 5 min`. */
export function durationText(milliseconds: number): string {
  let seconds = Math.max(0, Math.floor(milliseconds / 1000))
  const parts: string[] = []
  for (const [size, unit] of units) {
    const count = Math.floor(seconds / size)
    if (count > 0) parts.push(`${count} ${unit}`)
    seconds -= count * size
    if (parts.length === 2) break
  }
  return parts.join(' ') || '0 s'
}

export function bytesText(bytes: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = bytes > 0 ? Math.min(names.length - 1, Math.floor(Math.log2(bytes) / 10)) : 0
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${names[power]}`
}

export function timeText(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
}

const listeners = new Set<() => void>()
setInterval(() => {
  for (const listener of listeners) listener()
}, 10_000)

/** The age of something. All ages on a page are updated together. */
export function Age({ since }: { readonly since: string }) {
  const [, redraw] = useState(0)
  useEffect(() => {
    const listener = () => redraw((count) => count + 1)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }, [])
  return (
    <time dateTime={since} title={timeText(since)}>
      {durationText(Date.now() - new Date(since).getTime())}
    </time>
  )
}
