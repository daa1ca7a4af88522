import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { hostName } from '../pages.ts'

/** Chromium does not use its sandbox as root. Any other user is an ordinary one already. */
const user = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Resolves no names: berth's name is this host, and no other exists. */
const names = `MAP ${hostName} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1`

/** Suggestions of the address bar would take a renderer for each window. */
const disabledFeatures = 'HttpsUpgrades,WebUIOmniboxPopup,WebUIOmniboxAimPopup'

export interface BareChromium extends AsyncDisposable {
  /** The URL of its DevTools server. */
  readonly cdpUrl: string
}

/** Debian's Chromium without changes, on this host's own network. The reference for sessions. */
export async function startBareChromium(flags: readonly string[] = []): Promise<BareChromium> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-bare-'))
  await chmod(folder, 0o700)
  if (user) await chown(folder, user.uid, user.gid)
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run']
  const child = spawn(
    '/usr/lib/chromium/chromium',
    [
      ...['--headless', '--remote-debugging-port=0', `--user-data-dir=${join(folder, 'profile')}`, ...quiet],
      ...[`--host-resolver-rules=${names}`, `--disable-features=${disabledFeatures}`, ...flags, 'about:blank'],
    ],
    {
      ...user,
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { HOME: folder, PATH: '/usr/bin:/bin', LANG: 'en_US.UTF-8' },
    },
  )
  const ended = once(child, 'exit')
  return {
    cdpUrl: await addressOf(child.stderr),
    async [Symbol.asyncDispose]() {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    },
  }
}

async function addressOf(stderr: Readable): Promise<string> {
  for await (const line of createInterface({ input: stderr })) {
    const [, address] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
    if (address === undefined) continue
    stderr.resume()
    return address
  }
  throw new Error('Chromium did not start')
}
