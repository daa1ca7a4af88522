import type { Endpoint } from '@berth/contract/endpoint.ts'

/** Properties of a command that its endpoint does not determine. */
interface Spelling {
  /** The words of the command. */
  readonly words?: string
  /**
   * Fields given as positional arguments, in this order. The last one takes all remaining arguments if the field is a
   * list.
   */
  readonly positional?: readonly string[]
}

/** For paths that would result in an unexpected name. */
const spellings: Readonly<Record<string, Spelling>> = {
  getBrowserLiveView: { words: 'browsers view' },
  takeScreenshot: { words: 'browsers computer screenshot' },
  readClipboard: { words: 'browsers computer clipboard-read' },
  writeClipboard: { words: 'browsers computer clipboard-write' },
  curl: { words: 'browsers curl', positional: ['url'] },
  executePlaywrightCode: { words: 'browsers playwright execute', positional: ['code'] },
  runRepl: { words: 'browsers repl', positional: ['code'] },
  addCustomWebMcpTools: { words: 'browsers webmcp custom-tools add' },
  startFileWatch: { words: 'browsers fs watch start' },
  stopFileWatch: { words: 'browsers fs watch stop' },
  executeCommand: { words: 'browsers process exec', positional: ['command', 'args'] },
  spawnProcess: { words: 'browsers process spawn', positional: ['command', 'args'] },
  streamProcessOutput: { words: 'browsers process stdout-stream' },
  startReplay: { words: 'browsers replays start' },
  getDownload: { words: 'browsers downloads get' },
  loadExtensions: { words: 'browsers extensions upload' },
  listInvocationBrowsers: { words: 'invocations browsers list' },
  uploadExtension: { words: 'extensions upload' },
  getExtension: { words: 'extensions get' },
  listAuditLogs: { words: 'audit-logs search' },
  exportAuditLogChunk: { words: 'audit-logs download' },
  createSearch: { words: 'search run', positional: ['query'] },
  fetchSearchContents: { words: 'search contents' },
}

/** Groups whose path starts with the organization, which is left out of their name. */
const withoutOrganization = /^\/org(?=\/(projects|api_keys|credential_providers)\b)/

export interface OperationName {
  readonly words: readonly string[]
  readonly positional: readonly string[]
}

/** The words of an endpoint's command: its path without parameters, and a verb where the path has none. */
export function operationName(endpoint: Endpoint, all: readonly Endpoint[]): OperationName {
  const { words, positional = [] } = spellings[endpoint.operationId] ?? {}
  return { words: words?.split(' ') ?? wordsOf(endpoint, all), positional }
}

/** The operations with an explicit spelling, to detect those that no longer exist. */
export const spelledOperations = Object.keys(spellings)

function wordsOf(endpoint: Endpoint, all: readonly Endpoint[]): readonly string[] {
  const path = endpoint.path.replace(withoutOrganization, '')
  const words = path
    .split('/')
    .filter((segment) => segment && !segment.startsWith('{'))
    .map((segment) => segment.replaceAll('_', '-'))
  const verb = verbOf(endpoint, all)
  return verb ? [...words, verb] : words
}

function verbOf(endpoint: Endpoint, all: readonly Endpoint[]): string | undefined {
  const { path, method, replyType } = endpoint
  const isItem = path.endsWith('}')
  const isCollection = all.some((other) => other.path.startsWith(`${path}/{`) || (other.path === path && other.paged))
  const isShared = all.some((other) => other.path === path && other.method !== method)
  if (isItem) return method === 'GET' && replyType ? 'download' : itemVerbs[method]
  if (isCollection) return collectionVerbs[method]
  return isShared ? sharedVerbs[method] : undefined
}

type Verbs = Readonly<Partial<Record<Endpoint['method'], string>>>
const itemVerbs: Verbs = { GET: 'get', PATCH: 'update', PUT: 'set', DELETE: 'delete', POST: 'create' }
const collectionVerbs: Verbs = { GET: 'list', POST: 'create', DELETE: 'delete' }
const sharedVerbs: Verbs = { GET: 'get', PATCH: 'set', PUT: 'set', POST: 'create', DELETE: 'delete' }
