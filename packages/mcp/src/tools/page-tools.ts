import {
  activateTab,
  clickElement,
  closeTab,
  extractPage,
  listTabs,
  navigatePage,
  openTab,
  pressPageKey,
  selectOptions,
  snapshotPage,
  takeMarkedScreenshot,
  typeIntoElement,
  uploadToElement,
  waitForPage,
} from '@berth/contract/agent/operations/page-operations.ts'
import { getDownload, listDownloads } from '@berth/contract/downloads/download-endpoints.ts'
import { z } from 'zod'
import type { Api } from '../api.ts'
import { type Arguments, at, byId, Content, pick, type Tool } from '../tool.ts'

const text = z.string().optional()
const page = {
  session_id: z.string().describe('Id or name of the session.'),
  tab_id: text.describe('Default: the front tab.'),
}
const ref = z.string().describe('The element, as snapshot names it: e5.')
const bySession = byId('session_id')
const maxDownloadBytes = 100 * 1024

/** A request whose fields have the names of the arguments. */
function request(...names: readonly string[]) {
  return (args: Arguments) => ({ ...bySession(args), body: pick(args, 'tab_id', ...names) })
}

function say(sentence: string): Content {
  return new Content([{ type: 'text', text: sentence }])
}

function placeText({ url, title, tab_id }: Arguments): string {
  return `${tab_id} ${JSON.stringify(title)} ${url}`
}

function tool(name: string, help: string, input: z.ZodRawShape, actions: Tool['actions']): Tool {
  return { name, toolset: 'page', help, isOfProject: true, input: { ...page, ...input }, actions }
}

async function handleTabs(args: Arguments, api: Api): Promise<unknown> {
  const { id_or_name } = bySession(args).params as { id_or_name: string }
  const one = { params: { id_or_name, tab_id: String(args.tab_id) } }
  if (args.action !== 'list' && args.action !== 'open' && args.tab_id === undefined)
    throw new Error('tab_id is required')
  if (args.action === 'open')
    return say(placeText(await api.call(at(openTab), { ...bySession(args), body: pick(args, 'url') })))
  if (args.action === 'activate') await api.send(at(activateTab), one)
  if (args.action === 'close') await api.send(at(closeTab), one)
  const { tabs } = await api.call<{ tabs: readonly Arguments[] }>(at(listTabs), bySession(args))
  return say(tabs.map((tab) => `${placeText(tab)}${tab.is_active ? ' (in front)' : ''}`).join('\n'))
}

async function readDownload(args: Arguments, api: Api): Promise<unknown> {
  if (args.name === undefined) return api.call(at(listDownloads), bySession(args))
  const response = await api.send(at(getDownload), { params: { id_or_name: args.session_id, name: args.name } })
  const size = Number(response.headers.get('content-length') ?? Number.POSITIVE_INFINITY)
  if (size > maxDownloadBytes) {
    await response.body?.cancel()
    throw new Error(
      `the file has more than ${maxDownloadBytes / 1024} KiB: berth browsers downloads get writes it to a file`,
    )
  }
  const bytes = Buffer.from(await response.arrayBuffer())
  const content = bytes.toString('utf8')
  return bytes.equals(Buffer.from(content)) ? say(content) : { base64: bytes.toString('base64') }
}

/** Tools for a model that works in a page without code. They return short text. */
export const pageTools: readonly Tool[] = [
  tool(
    'snapshot',
    'Reads the page as text, a line for each element, with references such as e5 for the other tools. With changes: true ' +
      'only lines added or removed since the last snapshot, which is much shorter.',
    { changes: z.boolean().optional(), interactive: z.boolean().optional(), max_chars: z.int().optional() },
    {
      endpoint: at(snapshotPage),
      request: request('changes', 'interactive', 'max_chars'),
      reply: (reply) =>
        say(
          `${placeText(reply)}\n${reply.text}${reply.is_truncated ? '\n… (cut: raise max_chars, or interactive: true)' : ''}`,
        ),
    },
  ),
  tool(
    'navigate',
    'Goes to a URL, or back, forward, reload.',
    { url: text, history: z.enum(['back', 'forward', 'reload']).optional(), timeout_ms: z.int().optional() },
    {
      endpoint: at(navigatePage),
      request: request('url', 'history', 'timeout_ms'),
      reply: (reply) => say(placeText(reply)),
    },
  ),
  tool(
    'click',
    'Clicks an element.',
    { ref, button: z.enum(['left', 'middle', 'right']).optional(), clicks: z.int().optional() },
    { endpoint: at(clickElement), request: request('ref', 'button', 'clicks') },
  ),
  tool(
    'type',
    'Types into a field, replacing its content. submit presses Enter afterwards.',
    { ref, text: z.string(), append: z.boolean().optional(), submit: z.boolean().optional() },
    { endpoint: at(typeIntoElement), request: request('ref', 'text', 'append', 'submit') },
  ),
  tool(
    'select',
    'Chooses options of a list by value or label.',
    { ref, values: z.array(z.string()) },
    { endpoint: at(selectOptions), request: request('ref', 'values') },
  ),
  tool(
    'press',
    'Presses a key, or several: Enter, Control+A.',
    { key: z.string(), ref: ref.optional() },
    { endpoint: at(pressPageKey), request: request('key', 'ref') },
  ),
  tool(
    'upload',
    'Selects files of the session in a file field.',
    { ref, paths: z.array(z.string()) },
    { endpoint: at(uploadToElement), request: request('ref', 'paths') },
  ),
  tool(
    'wait_for',
    'Waits until the page shows a text, no longer shows it, or has a URL.',
    { text, text_gone: text, url: text, timeout_ms: z.int().optional() },
    {
      endpoint: at(waitForPage),
      request: request('text', 'text_gone', 'url', 'timeout_ms'),
      reply: (reply) => say(placeText(reply)),
    },
  ),
  tool(
    'tabs',
    'Lists, opens, activates and closes tabs.',
    { action: z.enum(['list', 'open', 'activate', 'close']), url: text },
    { endpoints: [listTabs, openTab, activateTab, closeTab].map(at), run: handleTabs },
  ),
  tool(
    'extract',
    'Reads the main content of the page as Markdown.',
    { max_chars: z.int().optional() },
    {
      endpoint: at(extractPage),
      request: request('max_chars'),
      reply: (reply) =>
        say(`${placeText(reply)}\n\n${reply.markdown}${reply.is_truncated ? '\n… (cut: raise max_chars)' : ''}`),
    },
  ),
  tool(
    'screenshot',
    'Takes a screenshot of the page, marked with the references of the last snapshot.',
    { marks: z.boolean().optional() },
    {
      endpoint: at(takeMarkedScreenshot),
      request: request('marks'),
      reply: (reply) =>
        new Content([
          { type: 'image', data: reply.png_b64, mimeType: 'image/png' },
          { type: 'text', text: placeText(reply) },
        ]),
    },
  ),
  tool(
    'download',
    'Lists files that pages have downloaded, or reads one of them.',
    { name: text },
    { endpoints: [listDownloads, getDownload].map(at), run: readDownload },
  ),
]
