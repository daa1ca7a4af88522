import {
  batchComputerAction,
  getMousePosition,
  readClipboard,
  takeScreenshot,
  writeClipboard,
} from '@berth/contract/agent/operations/computer-operations.ts'
import { curl } from '@berth/contract/agent/operations/curl-operations.ts'
import { executePlaywrightCode } from '@berth/contract/agent/operations/playwright-operations.ts'
import { executeCommand } from '@berth/contract/agent/operations/process-operations.ts'
import {
  createInvocation,
  deleteDeployment,
  getDeployment,
  getInvocation,
  listApps,
  listDeployments,
  listInvocationBrowsers,
} from '@berth/contract/apps/app-endpoints.ts'
import { getBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { listReplays, startReplay, stopReplay } from '@berth/contract/replays/replay-endpoints.ts'
import { z } from 'zod'
import type { Api } from '../api.ts'
import { type Arguments, at, byId, Content, type ContentPart, pageInput, pick, type Tool } from '../tool.ts'

const text = z.string().optional()
const session = { session_id: z.string().describe('Id or name of the session.') }
const bySession = byId('session_id')
/** The time that Playwright code may take, in seconds. */
const playwrightSeconds = 60

/** Actions that can be sent in one batch. The others return a result, and run after them. */
const batched = ['click_mouse', 'move_mouse', 'type_text', 'press_key', 'scroll', 'drag_mouse', 'set_cursor', 'sleep']
const returning = ['write_clipboard', 'read_clipboard', 'screenshot', 'get_mouse_position'] as const

async function act(args: Arguments, api: Api): Promise<unknown> {
  const actions = args.actions as readonly Arguments[]
  const first = actions.findIndex(({ type }) => !batched.includes(type))
  const [leading, last] = first < 0 ? [actions, []] : [actions.slice(0, first), actions.slice(first)]
  const misplaced = last.find(({ type }) => batched.includes(type))
  if (misplaced) throw new Error(`${misplaced.type} must come before the actions that return something`)
  const request = bySession(args)
  if (leading.length > 0) await api.send(at(batchComputerAction), { ...request, body: { actions: leading } })
  const parts: ContentPart[] = []
  for (const action of last)
    parts.push(...(await returningActions[action.type as (typeof returning)[number]](action, request, api)))
  return new Content(parts.length > 0 ? parts : [{ type: 'text', text: 'done' }])
}

type Returning = (
  action: Arguments,
  request: { params: Record<string, string> },
  api: Api,
) => Promise<readonly ContentPart[]>

const returningActions: Readonly<Record<(typeof returning)[number], Returning>> = {
  write_clipboard: async ({ write_clipboard: body }, request, api) => {
    await api.send(at(writeClipboard), { ...request, body })
    return []
  },
  read_clipboard: async (_action, request, api) => [
    { type: 'text', text: JSON.stringify(await api.call(at(readClipboard), request)) },
  ],
  get_mouse_position: async (_action, request, api) => [
    { type: 'text', text: JSON.stringify(await api.call(at(getMousePosition), request)) },
  ],
  screenshot: async ({ screenshot }, request, api) => {
    const [picture, { viewport }] = await Promise.all([
      api.send(at(takeScreenshot), { ...request, body: screenshot ?? {} }),
      api.call<Arguments>(at(getBrowser), request),
    ])
    const data = Buffer.from(await picture.arrayBuffer()).toString('base64')
    return [
      { type: 'image', data, mimeType: 'image/png' },
      { type: 'text', text: `viewport: ${JSON.stringify(viewport)}` },
    ]
  },
}

export const sessionTools: readonly Tool[] = [
  {
    name: 'manage_replays',
    toolset: 'replays',
    help: 'Recordings of a session’s screen.',
    isOfProject: true,
    input: {
      ...session,
      replay_id: text,
      framerate: z.number().optional(),
      max_duration_in_seconds: z.number().optional(),
      record_audio: z.boolean().optional(),
    },
    actions: {
      start: {
        endpoint: at(startReplay),
        request: (args) => ({
          ...bySession(args),
          body: pick(args, 'framerate', 'max_duration_in_seconds', 'record_audio'),
        }),
      },
      stop: {
        endpoint: at(stopReplay),
        needs: ['replay_id'],
        request: (args) => ({ params: { id_or_name: args.session_id, replay_id: args.replay_id } }),
      },
      list: {
        endpoint: at(listReplays),
        request: bySession,
        hint: 'There is no replay. The action start records one.',
      },
    },
  },
  {
    name: 'manage_apps',
    toolset: 'apps',
    help: 'Apps that run beside the browsers: their versions, deployments and invocations. invoke returns an id immediately.',
    isOfProject: true,
    input: {
      ...pageInput,
      app_name: text,
      version: text,
      query: text,
      action_name: text,
      payload: text.describe('JSON text.'),
      deployment_id: text,
      invocation_id: text,
    },
    actions: {
      list_apps: {
        endpoint: at(listApps),
        request: (args) => ({ query: pick(args, 'limit', 'offset', 'app_name', 'version', 'query') }),
        hint: 'There is no app. berth deploy uploads one.',
      },
      invoke: {
        endpoint: at(createInvocation),
        needs: ['app_name', 'action_name'],
        request: (args) => ({
          body: { version: 'latest', ...pick(args, 'app_name', 'action_name', 'version', 'payload'), async: true },
        }),
      },
      get_deployment: { endpoint: at(getDeployment), needs: ['deployment_id'], request: byId('deployment_id', 'id') },
      list_deployments: {
        endpoint: at(listDeployments),
        request: (args) => ({
          query: { ...pick(args, 'limit', 'offset', 'app_name', 'query'), app_version: args.version },
        }),
      },
      delete_deployment: {
        endpoint: at(deleteDeployment),
        needs: ['deployment_id'],
        request: byId('deployment_id', 'id'),
      },
      get_invocation: { endpoint: at(getInvocation), needs: ['invocation_id'], request: byId('invocation_id', 'id') },
      list_invocation_browsers: {
        endpoint: at(listInvocationBrowsers),
        needs: ['invocation_id'],
        request: byId('invocation_id', 'id'),
      },
    },
  },
  {
    name: 'computer_action',
    toolset: 'computer',
    help:
      'Mouse, keyboard, clipboard and screenshots of a session, several actions in order. Each has a type and a field of the ' +
      'same name with its settings: {"type":"click_mouse","click_mouse":{"x":10,"y":20}}. Those that return something ' +
      '(screenshot, read_clipboard, get_mouse_position) come last.',
    isOfProject: true,
    input: {
      ...session,
      actions: z
        .array(z.looseObject({ type: z.enum([...batched, ...returning]) }))
        .min(1)
        .max(100),
    },
    actions: {
      endpoints: [batchComputerAction, takeScreenshot, readClipboard, writeClipboard, getMousePosition, getBrowser].map(
        at,
      ),
      run: act,
    },
  },
  {
    name: 'browser_curl',
    toolset: 'browser_curl',
    help: 'Sends an HTTP request with the network, cookies and TLS of a session’s browser.',
    isOfProject: true,
    input: {
      ...session,
      url: z.string(),
      method: text,
      headers: z.record(z.string(), z.string()).optional(),
      body: text,
      response_encoding: z.enum(['utf8', 'base64']).optional(),
      timeout_ms: z.int().optional(),
    },
    actions: {
      endpoint: at(curl),
      request: (args) => ({
        ...bySession(args),
        body: pick(args, 'url', 'method', 'headers', 'body', 'response_encoding', 'timeout_ms'),
      }),
    },
  },
  {
    name: 'execute_playwright_code',
    toolset: 'playwright',
    help:
      'Runs TypeScript with Playwright in the session: page, context and browser are there, and what it returns is the ' +
      `result. At most ${playwrightSeconds} s.`,
    isOfProject: true,
    input: { ...session, code: z.string() },
    actions: {
      endpoint: at(executePlaywrightCode),
      request: (args) => ({ ...bySession(args), body: { code: args.code, timeout_sec: playwrightSeconds } }),
    },
  },
  {
    name: 'exec_command',
    toolset: 'shell',
    help: 'Runs a program in the machine of a session and waits for its end. It does not run in a shell: command bash, args ["-c", "…"].',
    isOfProject: true,
    input: {
      ...session,
      command: z.string(),
      args: z.array(z.string()).optional(),
      cwd: text,
      timeout_sec: z.int().min(1).max(150).optional(),
      as_root: z.boolean().optional(),
    },
    actions: {
      endpoint: at(executeCommand),
      request: (args) => ({
        ...bySession(args),
        body: { timeout_sec: 30, ...pick(args, 'command', 'args', 'cwd', 'timeout_sec', 'as_root') },
      }),
      reply: ({ exit_code, duration_ms, stdout_b64, stderr_b64 }) => ({
        exit_code,
        duration_ms,
        stdout: Buffer.from(stdout_b64, 'base64').toString(),
        stderr: Buffer.from(stderr_b64, 'base64').toString(),
      }),
    },
  },
]
