import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { clients } from '../../e2e/clients/client-list.ts'
import { installClient } from '../../e2e/clients/install-client.ts'
import type { Berth } from '../../e2e/testing/berth.ts'

interface Call {
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
}

/**
 * How the tools of a server are called and their responses are read. References are the names of elements in its
 * snapshots.
 */
export interface ServerTools {
  readonly navigate: (url: string) => Call
  /** `isAgain`: only changes since the last one. */
  readonly look: (isAgain: boolean) => Call
  readonly find: (text: string, kind: string, name: string) => string | undefined
  readonly click: (ref: string, name: string) => Call
  readonly type: (ref: string, name: string, text: string) => Call
  readonly select: (ref: string, name: string, option: string) => Call
  readonly press: (key: string) => Call
  readonly wait: (text: string) => Call
}

/** A server, with statistics about a client's calls and its responses. */
export class ToolHost {
  readonly name: string
  readonly tools: ServerTools
  readonly #client: Client
  calls = 0
  /** Total text of all responses. */
  characters = 0

  constructor(name: string, tools: ServerTools, client: Client) {
    this.name = name
    this.tools = tools
    this.#client = client
  }

  async call({ tool, args }: Call): Promise<string> {
    this.calls += 1
    const { content, isError } = (await this.#client.callTool({ name: tool, arguments: { ...args } })) as CallToolResult
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
    this.characters += text.length
    if (isError) throw new Error(`${this.name}: ${tool}: ${text.slice(0, 300)}`)
    return text
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}

const escaped = (text: string) => RegExp.escape(text)

function berthTools(session_id: string): ServerTools {
  const call = (tool: string, args: object = {}): Call => ({ tool, args: { session_id, ...args } })
  return {
    navigate: (url) => call('navigate', { url }),
    look: (isAgain) => call('snapshot', isAgain ? { changes: true } : {}),
    find: (text, kind, name) => new RegExp(`^[+ ]*(\\w+) ${kind} "${escaped(name)}"`, 'm').exec(text)?.[1],
    click: (ref) => call('click', { ref }),
    type: (ref, _name, text) => call('type', { ref, text }),
    select: (ref, _name, option) => call('select', { ref, values: [option] }),
    press: (key) => call('press', { key }),
    wait: (text) => call('wait_for', { text }),
  }
}

const playwrightTools: ServerTools = {
  navigate: (url) => ({ tool: 'browser_navigate', args: { url } }),
  look: () => ({ tool: 'browser_snapshot', args: {} }),
  find: (text, kind, name) => new RegExp(`- ${kind} "${escaped(name)}".*?\\[ref=(\\w+)\\]`).exec(text)?.[1],
  click: (ref, element) => ({ tool: 'browser_click', args: { element, ref, target: ref } }),
  type: (ref, element, text) => ({ tool: 'browser_type', args: { element, ref, target: ref, text } }),
  select: (ref, element, option) => ({
    tool: 'browser_select_option',
    args: { element, ref, target: ref, values: [option] },
  }),
  press: (key) => ({ tool: 'browser_press_key', args: { key } }),
  wait: (text) => ({ tool: 'browser_wait_for', args: { text } }),
}

function devtoolsTools(pageId: number): ServerTools {
  const call = (tool: string, args: object = {}): Call => ({ tool, args: { pageId, ...args } })
  return {
    navigate: (url) => call('navigate_page', { type: 'url', url }),
    look: () => call('take_snapshot'),
    find: (text, kind, name) => new RegExp(`uid=(\\w+) ${kind} "${escaped(name)}"`).exec(text)?.[1],
    click: (uid) => call('click', { uid }),
    type: (uid, _name, value) => call('fill', { uid, value }),
    select: (uid, _name, value) => call('fill', { uid, value }),
    press: (key) => call('press_key', { key }),
    wait: (text) => call('wait_for', { text: [text] }),
  }
}

export async function openBerthTools(berth: Berth, sessionId: string): Promise<ToolHost> {
  const client = new Client({ name: 'bench', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${berth.apiKey}` } }
  const transport = new StreamableHTTPClientTransport(new URL(`${berth.url}/mcp`), { requestInit })
  // The library's own types disagree under exactOptionalPropertyTypes.
  await client.connect(transport as never)
  return new ToolHost('berth', berthTools(sessionId), client)
}

export async function openPlaywrightTools(cdpUrl: string): Promise<ToolHost> {
  const client = await startProgram('@playwright/mcp', 'playwright-mcp', ['--cdp-endpoint', cdpUrl])
  return new ToolHost('@playwright/mcp', playwrightTools, client)
}

export async function openDevtoolsTools(cdpUrl: string): Promise<ToolHost> {
  const args = ['--wsEndpoint', cdpUrl, '--no-usage-statistics', '--no-performance-crux']
  const client = await startProgram('chrome-devtools-mcp', 'chrome-devtools-mcp', args)
  const { content } = (await client.callTool({ name: 'list_pages', arguments: {} })) as CallToolResult
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
  return new ToolHost('chrome-devtools-mcp', devtoolsTools(Number(/^(\d+):/m.exec(text)?.[1])), client)
}

/** Installs the server, as the suite of real clients does, and starts it. */
async function startProgram(name: string, program: string, args: readonly string[]): Promise<Client> {
  const known = clients.find((each) => each.name === name)
  if (!known) throw new Error(`there is no client ${name}`)
  const [, installed = ''] = await installClient(known)
  const client = new Client({ name: 'bench', version: '1' })
  const command = join(installed, '..', 'node_modules/.bin', program)
  // It writes files into its working folder.
  const cwd = join(installed, '..')
  await client.connect(new StdioClientTransport({ command, args: [...args], cwd, stderr: 'ignore' }))
  return client
}
