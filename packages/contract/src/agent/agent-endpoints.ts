import { z } from 'zod'
import { BrowserCdpCommandMethod, telemetryCategories } from '../browsers/telemetry-config.ts'
import { BrowserViewport } from '../browsers/viewport.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'
import { TelemetryEvent } from '../telemetry/telemetry-event.ts'
import { agentContractVersion } from './agent-protocol.ts'
import { agentRoutes } from './agent-routes.ts'
import { solvableCaptchaTypes } from './captcha-types.ts'

const tag = 'Agent'

/** What the agent must know to start. The driver writes it to a file that the agent reads once. `configureAgent` changes the rest. */
export const AgentConfig = z.object({
  contract_version: z.literal(agentContractVersion),
  headless: z.boolean(),
  stealth: z.boolean(),
  /** The agent asks the server for the answers to challenges. */
  solves_captchas: z.boolean().optional(),
  gpu: z.boolean(),
  kiosk_mode: z.boolean(),
  viewport: BrowserViewport.required(),
  /** Chromium is not launched before the state of a profile has arrived. */
  awaits_profile: z.boolean().default(false),
  /** Chromium is not launched before its first extensions have arrived. */
  awaits_extensions: z.boolean().default(false),
  /** Folders as the agent sees them. */
  home_folder: z.string(),
  /** Contains sockets that only this machine uses: display, VNC. */
  run_folder: z.string(),
  /** Unix socket of egress, the machine's only connection to other networks. */
  egress_socket: z.string(),
  chromium_path: z.string(),
  /** A machine of an app: it has no browser. */
  is_app: z.boolean().optional(),
  /** `host:port` to listen on. Absent: on a socket that the agent inherits. */
  listen_address: z.string().optional(),
})
export type AgentConfig = z.infer<typeof AgentConfig>

/** Programs that the agent keeps running. */
export const ServiceName = z.enum(['chromium', 'display'])
export type ServiceName = z.infer<typeof ServiceName>

/** Up to the last one that a Date can tell. */
const EpochMilliseconds = z.number().min(0).max(8.64e15)

export const AgentState = z.object({
  contract_version: z.int(),
  /**
   * `starting`: the first page has not responded yet. `failed`: it will not; `failure` gives the reason and the agent
   * exits.
   */
  state: z.enum(['starting', 'ready', 'failed']),
  failure: z.string().optional(),
  /** When the last activity ended; null while there is activity. */
  idle_since: EpochMilliseconds.nullable(),
})
export type AgentState = z.infer<typeof AgentState>

/** A challenge of a page whose answer is a token. */
export const CaptchaTask = z.object({
  task_id: z.string().max(64),
  type: z.enum(solvableCaptchaTypes),
  site_key: z.string().max(200),
  /** Without query and fragment. */
  page_url: z.string().max(4_096),
})
export type CaptchaTask = z.infer<typeof CaptchaTask>

/** What happened in the machine and must be told. */
export const AgentEvent = z.discriminatedUnion('event', [
  /** A program died by itself; the agent starts it again. */
  z.object({
    event: z.literal('service_crashed'),
    service: ServiceName,
    detail: z.string(),
    at: EpochMilliseconds,
  }),
  /** `answerCaptcha` tells what has become of it. */
  CaptchaTask.extend({ event: z.literal('captcha_found'), at: EpochMilliseconds }),
])
export type AgentEvent = z.infer<typeof AgentEvent>

/** Sequence numbers begin at 1 with each agent, and each record has the next one. */
const Sequence = z.int().min(1)

/** An event, or how many events up to this one are lost: the agent keeps only so many that nobody acknowledges. */
export const AgentEventRecord = z.union([
  z.object({ sequence: Sequence, event: AgentEvent }),
  z.object({ sequence: Sequence, lost: z.int().min(1) }),
])
export type AgentEventRecord = z.infer<typeof AgentEventRecord>

/** Returns the current state immediately. */
export const getAgentState = defineEndpoint({
  operationId: 'getAgentState',
  ...agentRoutes.readState,
  summary: 'Where the agent stands',
  tag,
  access: 'internal',
  reply: AgentState,
  status: 200,
  errors: [],
})

/**
 * The current state, and with each change the state then. It tells that the agent is alive: the server ends the session
 * of an agent that can tell no state for long.
 */
export const followAgentState = defineEndpoint(
  defineStream({
    ...agentRoutes.followState,
    operationId: 'followAgentState',
    summary: 'Follow where the agent stands',
    tag,
    access: 'internal',
    event: AgentState,
    errors: [],
  }),
)

/**
 * Every event after the one that is named, or after the last one that was acknowledged, in order and without end. To name
 * an event acknowledges it and those before.
 */
export const followAgentEvents = defineEndpoint(
  defineStream({
    ...agentRoutes.followEvents,
    operationId: 'followAgentEvents',
    summary: 'Follow what happens in the machine',
    tag,
    access: 'internal',
    query: z.object({ after: z.coerce.number().int().min(0).optional() }),
    event: AgentEventRecord,
    errors: [],
  }),
)

/** What the server has taken, it will not ask for again: the agent forgets this event and those before. */
export const acknowledgeAgentEvents = defineEndpoint({
  ...agentRoutes.acknowledgeEvents,
  operationId: 'acknowledgeAgentEvents',
  summary: 'Confirm events',
  tag,
  access: 'internal',
  body: z.object({ sequence: Sequence }),
  status: 204,
  errors: [],
})

/** A telemetry event, or how many up to this one are lost. */
export const AgentTelemetryRecord = z.union([
  z.object({ sequence: Sequence, event: TelemetryEvent }),
  z.object({ sequence: Sequence, lost: z.int().min(1) }),
])
export type AgentTelemetryRecord = z.infer<typeof AgentTelemetryRecord>

/** The same as `followAgentEvents`, for the telemetry of the session. */
export const followAgentTelemetry = defineEndpoint(
  defineStream({
    ...agentRoutes.followTelemetry,
    operationId: 'followAgentTelemetry',
    summary: 'Follow the telemetry of the session',
    tag,
    access: 'internal',
    query: z.object({ after: z.coerce.number().int().min(0).optional() }),
    event: AgentTelemetryRecord,
    errors: [],
  }),
)

/** The server has stored this event and those before. */
export const acknowledgeAgentTelemetry = defineEndpoint({
  ...agentRoutes.acknowledgeTelemetry,
  operationId: 'acknowledgeAgentTelemetry',
  summary: 'Confirm telemetry events',
  tag,
  access: 'internal',
  body: z.object({ sequence: Sequence }),
  status: 204,
  errors: [],
})

/** Tells the agent that the kernel has ended processes of the machine, which only the server can see. */
export const reportMemoryKills = defineEndpoint({
  ...agentRoutes.reportMemoryKills,
  operationId: 'reportMemoryKills',
  summary: 'Report processes that the kernel has ended',
  tag,
  access: 'internal',
  body: z.object({ processes: z.int().min(1) }),
  status: 204,
  errors: [],
})

/** What has become of a task. */
export const CaptchaOutcome = z.discriminatedUnion('status', [
  z.object({ status: z.literal('solved'), token: z.string() }),
  z.object({ status: z.literal('failure'), error_code: z.string() }),
  z.object({ status: z.literal('timeout') }),
])
export type CaptchaOutcome = z.infer<typeof CaptchaOutcome>

/** Gives the agent the answer to a challenge, which it enters in the page. A task that is over is no failure. */
export const answerCaptcha = defineEndpoint({
  ...agentRoutes.answerCaptcha,
  operationId: 'answerCaptcha',
  summary: 'Answer a challenge',
  tag,
  access: 'internal',
  body: z.object({ task_id: z.string(), outcome: CaptchaOutcome }),
  status: 204,
  errors: [],
})

/** Ends the connections of CDP clients, so that telemetry tells of it before the session ends. */
export const endClients = defineEndpoint({
  ...agentRoutes.endClients,
  operationId: 'endClients',
  summary: 'End the connections of CDP clients',
  tag,
  access: 'internal',
  body: z.object({}),
  status: 204,
  errors: [],
})

/** Closes Chromium so that it saves its state, stops the display and responds. The agent then exits. */
export const stopAgent = defineEndpoint({
  operationId: 'stopAgent',
  ...agentRoutes.stop,
  summary: 'End the browser and the agent',
  tag,
  access: 'internal',
  status: 204,
  errors: [],
})

/** What the agent captures as telemetry. */
export const TelemetryCapture = z.object({
  categories: z.array(z.enum(telemetryCategories)),
  /** Commands of clients that are not captured. */
  excluded_methods: z.array(BrowserCdpCommandMethod),
})
export type TelemetryCapture = z.infer<typeof TelemetryCapture>

/** What of a browser can be changed while it runs, besides its profile and its extensions, which come as streams. */
export const BrowserConfiguration = z.object({
  viewport: BrowserViewport.required().optional(),
  /** Whether the size changes even while somebody watches. */
  force: z.boolean().optional(),
  /** Of a headful browser. Another value than the one it has takes a new launch without any state, so it is for one that nobody has used. */
  kiosk_mode: z.boolean().optional(),
  /** Of a browser that has not been launched yet. */
  stealth: z.boolean().optional(),
  /** The same: its policies are not those that its machine was started with. */
  has_new_policies: z.boolean().optional(),
  /** A browser that waits for a profile is launched without one. */
  launch: z.boolean().optional(),
  /**
   * The answer does not wait for the size and the page; whoever wants to use the browser waits. For one that nobody has used
   * yet: when the size cannot be changed, the browser is launched anew with it.
   */
  clients_wait: z.boolean().optional(),
  /** The agent loads what the next requests will need. */
  rehearse: z.boolean().optional(),
  /** Where the page goes that a person would see. */
  start_url: z.string().optional(),
  /** Null: nothing is captured. */
  telemetry: TelemetryCapture.nullable().optional(),
})
export type BrowserConfiguration = z.infer<typeof BrowserConfiguration>

/**
 * Changes the browser, and answers when it has the size and the mode, and has taken the order to navigate. What it has
 * already is fine: nothing happens then. Before the browser is there, the agent keeps what it begins with.
 */
export const configureAgent = defineEndpoint({
  operationId: 'configureAgent',
  ...agentRoutes.configure,
  summary: 'Change the configuration of the browser',
  tag,
  access: 'internal',
  body: BrowserConfiguration,
  status: 204,
  errors: ['viewport_in_use'],
})

/** A recording as the server names it. */
const RecordingId = z.string()

/**
 * Records the screen, and answers with fragmented MP4 as it is encoded: its head comes with the first frame. Whoever
 * leaves before the answer ends breaks the recording off.
 */
export const recordScreen = defineEndpoint({
  operationId: 'recordScreen',
  ...agentRoutes.record,
  summary: 'Record the screen',
  tag,
  access: 'internal',
  body: z.object({
    id: RecordingId,
    framerate: z.int(),
    /** The recording ends by itself after this time. */
    max_seconds: z.number().optional(),
  }),
  replyType: 'video/mp4',
  status: 200,
  errors: ['replay_start_failed'],
})
export type RecordRequest = z.output<typeof recordScreen.body & {}>

/** Has the answer of `recordScreen` end behind the last frame. Succeeds for a recording that has ended. */
export const endRecording = defineEndpoint({
  operationId: 'endRecording',
  ...agentRoutes.endRecording,
  summary: 'End a recording',
  tag,
  access: 'internal',
  body: z.object({ id: RecordingId }),
  status: 204,
  errors: [],
})

/** Takes a small picture of the page in front. Unlike the operations, it is no activity of the session. */
export const takeThumbnail = defineEndpoint({
  operationId: 'takeThumbnail',
  ...agentRoutes.takeThumbnail,
  summary: 'Take a small picture',
  tag,
  access: 'internal',
  body: z.object({}),
  reply: z.object({
    jpeg_b64: z
      .string()
      .max(128 * 1024)
      .optional(),
  }),
  status: 200,
  errors: [],
})

/**
 * Fetches a page with the cookies and by the way out of the browser: as it is sent, or as a temporary tab of no window
 * shows it when it has come to rest. Whoever leaves before the answer ends it.
 */
export const fetchPage = defineEndpoint({
  operationId: 'fetchPage',
  ...agentRoutes.fetchPage,
  summary: 'Fetch a page',
  tag,
  access: 'internal',
  body: z.object({
    url: z.string(),
    mode: z.enum(['curl', 'render']),
    timeout_ms: z.int(),
    accept_language: z.string().optional(),
    /** What is longer is cut. */
    max_bytes: z.int(),
  }),
  reply: z.object({
    status: z.int(),
    content_type: z.string().nullable(),
    final_url: z.string(),
    body_b64: z.string(),
    is_cut: z.boolean(),
    /** Of a rendered page: whether it had loaded before the time was over. */
    is_loaded: z.boolean(),
  }),
  status: 200,
  errors: ['curl_failed'],
})
export type FetchPageRequest = z.output<typeof fetchPage.body & {}>
export type FetchPageReply = z.output<typeof fetchPage.reply & {}>
