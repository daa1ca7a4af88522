import { createHash } from 'node:crypto'

/** The files of an app that define its dependencies, if they exist. */
export type Manifests = Readonly<Record<string, Buffer | undefined>>

export interface InstallStep {
  /** The title in the log. */
  readonly title: string
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface InstallPlan {
  /** Run one after another in the folder of the app. */
  readonly steps: readonly InstallStep[]
  /** Equal keys install the same packages. Absent if the result may differ each time. */
  readonly key: string | undefined
}

/** The app cannot be installed. The message is for its owner. */
export class NotInstallable extends Error {}

/** A hash of everything that determines what is installed. */
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
