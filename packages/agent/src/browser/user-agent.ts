import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** What a headful Chromium of this version calls itself; a headless one would say that it is headless. */
export async function readUserAgent(chromiumPath: string): Promise<string> {
  const { stdout } = await promisify(execFile)(chromiumPath, ['--version'], { env: { PATH: '/usr/bin:/bin' } })
  const major = /(\d+)\./.exec(stdout)?.[1]
  if (!major) throw new Error(`${chromiumPath} --version does not tell a version`)
  return `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`
}
