import { z } from 'zod'
import { BrowserViewport } from '../browsers/viewport.ts'
import { defineEndpoint } from '../endpoint.ts'
import { agentConfigurationPath, agentContractVersion, agentStatePath, agentStopPath } from './agent-protocol.ts'

export {
  agentContractVersion,
  agentDiscoveryPath,
  agentEventsPath,
  agentProfilePath,
} from './agent-protocol.ts'

const tag = 'Agent'

/** What the agent must know to start. The driver writes it to a file that the agent reads once. `configureAgent` changes the rest. */
export const AgentConfig = z.object({
  contract_version: z.literal(agentContractVersion),
  headless: z.boolean(),
  stealth: z.boolean(),
  gpu: z.boolean(),
  kiosk_mode: z.boolean(),
  viewport: BrowserViewport.required(),
  /** Chromium is not launched before the state of a profile has come in. */
  awaits_profile: z.boolean().default(false),
  /** Chromium is not launched before the extensions that it is to start with have come in. */
  awaits_extensions: z.boolean().default(false),
  /** Folders as the agent sees them. */
  home_folder: z.string(),
  /** Sockets that only this machine uses: display, VNC. */
  run_folder: z.string(),
  /** Unix socket of egress: the only way out. */
  egress_socket: z.string(),
  chromium_path: z.string(),
  /** `host:port` to listen on. Absent: on a socket that the agent inherits. */
  listen_address: z.string().optional(),
})
export type AgentConfig = z.infer<typeof AgentConfig>

/** Programs that the agent keeps running. */
export const ServiceName = z.enum(['chromium', 'display'])
export type ServiceName = z.infer<typeof ServiceName>

export const AgentState = z.object({
  contract_version: z.int(),
  /** `starting`: the first page has not answered yet. `failed`: it never will; `failure` says why, and the agent exits. */
  state: z.enum(['starting', 'ready', 'failed']),
  failure: z.string().optional(),
  /** Milliseconds since the epoch at which the last activity ended; null while there is activity. */
  idle_since: z.number().min(0).max(8.64e15).nullable(), // The last millisecond that a Date can tell.
})
export type AgentState = z.infer<typeof AgentState>

/**
 * One line of the event stream. The first line is a `state`; another follows with each change of state or activity.
 * A `service_crashed` comes when a program died by itself; the agent starts it again.
 */
export const AgentEvent = z.discriminatedUnion('event', [
  z.object({ event: z.literal('state'), ...AgentState.shape }),
  z.object({ event: z.literal('service_crashed'), service: ServiceName, detail: z.string(), at: z.number() }),
])
export type AgentEvent = z.infer<typeof AgentEvent>

/** The current state. Waits for nothing. */
export const getAgentState = defineEndpoint({
  operationId: 'getAgentState',
  method: 'GET',
  path: agentStatePath,
  summary: 'Where the agent stands',
  tag,
  access: 'internal',
  reply: AgentState,
  status: 200,
  errors: [],
})

/** Closes Chromium so that it writes its state to disk, stops the display, answers, and then the agent exits. */
export const stopAgent = defineEndpoint({
  operationId: 'stopAgent',
  method: 'POST',
  path: agentStopPath,
  summary: 'End the browser and the agent',
  tag,
  access: 'internal',
  status: 204,
  errors: [],
})

/** What of a browser can be changed while it runs, besides its profile and its extensions, which come as streams. */
export const BrowserConfiguration = z.object({
  viewport: BrowserViewport.required().optional(),
  /** Of a headful browser. Another value than the one it has takes a new launch, with the same tabs. */
  kiosk_mode: z.boolean().optional(),
  /** Where the page goes that a person would see. */
  start_url: z.string().optional(),
})
export type BrowserConfiguration = z.infer<typeof BrowserConfiguration>

/**
 * Changes the browser, and answers when it has the size and the mode, and has taken the order to navigate. What it has
 * already is fine: nothing happens then. Before the browser is there, the agent keeps what it begins with.
 */
export const configureAgent = defineEndpoint({
  operationId: 'configureAgent',
  method: 'POST',
  path: agentConfigurationPath,
  summary: 'Change the configuration of the browser',
  tag,
  access: 'internal',
  body: BrowserConfiguration,
  status: 204,
  errors: [],
})
