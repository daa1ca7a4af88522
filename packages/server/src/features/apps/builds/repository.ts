import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { addressInMachine } from '../machines/address-in-machine.ts'
import type { AppMachine } from '../machines/app-machine.ts'
import { inMachine } from '../machines/paths.ts'
import { runProgram } from '../machines/run-program.ts'
import { NotInstallable } from './install-step.ts'

export interface Repository {
  readonly url: string
  readonly ref: string
  /** A folder of it. Absent: all of it. */
  readonly path: string | undefined
  readonly token: string | undefined
}

export function tokenContext(id: DeploymentId): string {
  return `repository token ${id}`
}

/** Nothing but a repository of the host that the operator has named: no other protocol, port or credentials. */
export function checkRepositoryUrl(text: string, gitHubUrl: string): string {
  const url = URL.parse(text)
  const { origin } = new URL(gitHubUrl)
  const isPlain = url && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (isPlain && url.origin === origin && /^\/[\w.-]+\/[\w.-]+\/?$/.test(url.pathname)) {
    return url.href.replace(/\/$/, '')
  }
  throw new BerthError('bad_request', { reason: `source.url: must be a repository, as ${origin}/owner/name.` })
}

/*
 * Nothing is checked out: hooks, filters, submodules and links of the repository do nothing. What leads out of the
 * archive is refused with it.
 */
const fetchAndPack = `
git init --quiet --template= "$FOLDER" && cd "$FOLDER" &&
git fetch --quiet --depth=1 --no-tags --no-recurse-submodules --end-of-options "$URL" "$REF" &&
git archive --format=zip -o "$ARCHIVE" "FETCH_HEAD$SUBFOLDER" && cd / && rm -rf "$FOLDER"`

/** Packs the commit that the reference names, in the machine and with its way out. Says where the archive is. */
export async function packRepository(
  { operations }: AppMachine,
  { url, ref, path, token }: Repository,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<string> {
  const address = addressInMachine(url) ?? url
  const { origin, protocol } = new URL(address)
  const credentials = token && Buffer.from(`x-access-token:${token}`).toString('base64')
  const env = {
    FOLDER: '/tmp/repository',
    ARCHIVE: inMachine.sourceArchive,
    URL: address,
    REF: ref,
    SUBFOLDER: path === undefined ? '' : `:${path}`,
    GIT_ALLOW_PROTOCOL: protocol.slice(0, -1),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    ...(credentials && {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: `http.${origin}/.extraHeader`,
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${credentials}`,
    }),
  }
  // The other side may answer with what it was sent.
  const onSafeLine = (line: string) => onLine(token ? hide(line, [token, credentials ?? '']) : line)
  const request = { command: '/bin/sh', args: ['-c', fetchAndPack], env }
  const exitCode = await runProgram(operations, request, onSafeLine, signal)
  if (exitCode === 0) return inMachine.sourceArchive
  throw new NotInstallable(`source: the repository could not be fetched: git ended with ${exitCode}.`)
}

function hide(line: string, secrets: readonly string[]): string {
  return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), line)
}
