import { text } from 'node:stream/consumers'
import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { addressInMachine } from '../machines/address-in-machine.ts'
import type { AppMachine } from '../machines/app-machine.ts'
import { inMachine } from '../machines/paths.ts'
import { runProgram } from '../machines/run-program.ts'
import { someOf } from '../some-of.ts'
import { NotInstallable } from './install-step.ts'

export interface Repository {
  readonly url: string
  readonly ref: string
  /** A folder of the repository. When absent, the whole repository. */
  readonly path: string | undefined
  readonly token: string | undefined
}

export function tokenContext(id: DeploymentId): string {
  return `repository token ${id}`
}

/** Accepts only a repository on the host that the operator configured: no other protocol, port or credentials. */
export function checkRepositoryUrl(text: string, gitHubUrl: string): string {
  const url = URL.parse(text)
  const { origin } = new URL(gitHubUrl)
  const isPlain = url && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (isPlain && url.origin === origin && /^\/[\w.-]+\/[\w.-]+\/?$/.test(url.pathname)) {
    return url.href.replace(/\/$/, '')
  }
  throw new BerthError('bad_request', { reason: `source.url: must be a repository such as ${origin}/owner/name.` })
}

/*
 * Nothing is checked out, so hooks, filters and links of the repository have no effect. Members that lead out of the
 * archive are rejected when it is read. A submodule is a reference to a commit of another repository and becomes an
 * empty folder.
 */
const maxListBytes = 64 * 1024
const fetchAndPack = `
git init --quiet --template= "$FOLDER" && cd "$FOLDER" &&
git fetch --quiet --depth=1 --no-tags --no-recurse-submodules --end-of-options "$URL" "$REF" &&
{ git ls-tree -r -z "FETCH_HEAD$SUBFOLDER" | grep -z '^160000 ' | head -c ${maxListBytes} > "$SUBMODULES"; } &&
git archive --format=zip -o "$ARCHIVE" "FETCH_HEAD$SUBFOLDER" && cd / && rm -rf "$FOLDER"`

/** Packs the commit of the reference, in the machine and through its network. Returns the path of the archive. */
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
    SUBMODULES: inMachine.submodules,
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
  // The server may echo what it received.
  const onSafeLine = (line: string) => onLine(token ? hide(line, [token, credentials ?? '']) : line)
  const request = { command: '/bin/sh', args: ['-c', fetchAndPack], env }
  const exitCode = await runProgram(operations, request, onSafeLine, signal)
  if (exitCode !== 0) {
    throw new NotInstallable(`source: the repository could not be fetched: git failed with exit code ${exitCode}.`)
  }
  const submodules = submodulesIn(await text(await operations.readFile(inMachine.submodules, signal)))
  if (submodules.length === 0) return inMachine.sourceArchive
  throw new NotInstallable(
    `source: the repository has submodules, which are not fetched: ${someOf(submodules)}. Name a folder without them in source.path, or upload an archive.`,
  )
}

/** The submodules in a listing of git, where each path follows its mode and commit. */
function submodulesIn(listing: string): readonly string[] {
  return listing.split('\0').flatMap((entry) => entry.split('\t').slice(1, 2))
}

function hide(line: string, secrets: readonly string[]): string {
  return secrets.reduce((text, secret) => text.replaceAll(secret, '***'), line)
}
