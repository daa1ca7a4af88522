import { createHash } from 'node:crypto'

/** The files of an app that say what to install, as far as they are there. */
export type Manifests = Readonly<Record<string, Buffer | undefined>>

export interface InstallStep {
  /** What the log tells of it. */
  readonly title: string
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface InstallPlan {
  /** Run in the folder of the app, one after the other. */
  readonly steps: readonly InstallStep[]
  /** What is installed is the same for the same key. Absent: it may be different each time. */
  readonly key: string | undefined
}

/** An app that cannot be installed. The message is for its owner. */
export class NotInstallable extends Error {}

/** Of everything that decides what is installed. */
export function installKey(parts: readonly string[], manifests: Manifests): string {
  const hash = createHash('sha256')
  const add = (part: string | Buffer) => hash.update(`${part.length}\n`).update(part)
  for (const part of parts) add(part)
  for (const [name, content] of Object.entries(manifests)) {
    if (content === undefined) continue
    add(name)
    add(content)
  }
  return hash.digest('hex')
}
