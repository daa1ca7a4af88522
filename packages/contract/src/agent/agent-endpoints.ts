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

/**
 * What the agent needs to start. The driver writes it to a file that the agent reads once. `configureAgent` changes
 * settings later.
 */
export const AgentConfig = z.object({
  contract_version: z.literal(agentContractVersion),
  headless: z.boolean(),
  stealth: z.boolean(),
  /** The agent asks the server to solve captchas. */
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
  /** Set for the machine of an app, which has no browser. */
  is_app: z.boolean().optional(),
  /** The `host:port` to listen on. When absent, the agent listens on a socket that it inherits. */
  listen_address: z.string().optional(),
})
export type AgentConfig = z.infer<typeof AgentConfig>

/** Programs that the agent keeps running. */
export const ServiceName = z.enum(['chromium', 'display'])
export type ServiceName = z.infer<typeof ServiceName>

/** At most the last time that a Date can represent. */
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

/** A captcha whose solution is a token. */
export const CaptchaTask = z.object({
  task_id: z.string().max(64),
  type: z.enum(solvableCaptchaTypes),
  site_key: z.string().max(200),
  /** Without query and fragment. */
  page_url: z.string().max(4_096),
})
export type CaptchaTask = z.infer<typeof CaptchaTask>

/** Events of the machine that must reach the server. */
export const AgentEvent = z.discriminatedUnion('event', [
  /** A program exited unexpectedly. The agent restarts it. */
  z.object({
    event: z.literal('service_crashed'),
    service: ServiceName,
    detail: z.string(),
    at: EpochMilliseconds,
  }),
  /** `answerCaptcha` reports the outcome. */
  CaptchaTask.extend({ event: z.literal('captcha_found'), at: EpochMilliseconds }),
])
export type AgentEvent = z.infer<typeof AgentEvent>

/** Sequence numbers begin at 1 for each agent and increase by one for each record. */
const Sequence = z.int().min(1)

/**
 * An event, or the number of lost events up to this sequence number: the agent stores a limited number of
 * unacknowledged events.
 */
export const AgentEventRecord = z.union([
  z.object({ sequence: Sequence, event: AgentEvent }),
  z.object({ sequence: Sequence, lost: z.int().min(1) }),
])
export type AgentEventRecord = z.infer<typeof AgentEventRecord>

/** Returns the current state immediately. */
export const getAgentState = defineEndpoint({
  operationId: 'getAgentState',
  ...agentRoutes.readState,
  summary: 'Get the state of the agent',
  tag,
  access: 'internal',
  reply: AgentState,
  status: 200,
  errors: [],
})

/**
 * Sends the current state, and the new state after each change. It also shows that the agent is alive: the server ends
 * the session of an agent that sends no state for too long.
 */
export const followAgentState = defineEndpoint(
  defineStream({
    ...agentRoutes.followState,
    operationId: 'followAgentState',
    summary: 'Follow the state of the agent',
    tag,
    access: 'internal',
    event: AgentState,
    errors: [],
  }),
)

/**
 * Sends every event after `after`, or after the last acknowledged event, in order and without end. `after` also
 * acknowledges that event and those before.
 */
export const followAgentEvents = defineEndpoint(
  defineStream({
    ...agentRoutes.followEvents,
    operationId: 'followAgentEvents',
    summary: 'Follow the events of the machine',
    tag,
    access: 'internal',
    query: z.object({ after: z.coerce.number().int().min(0).optional() }),
    event: AgentEventRecord,
    errors: [],
  }),
)

/** The agent deletes this event and those before: the server will not request them again. */
export const acknowledgeAgentEvents = defineEndpoint({
  ...agentRoutes.acknowledgeEvents,
  operationId: 'acknowledgeAgentEvents',
  summary: 'Acknowledge events',
  tag,
  access: 'internal',
  body: z.object({ sequence: Sequence }),
  status: 204,
  errors: [],
})

/** A telemetry event, or the number of lost events up to this sequence number. */
export const AgentTelemetryRecord = z.union([
  z.object({ sequence: Sequence, event: TelemetryEvent }),
  z.object({ sequence: Sequence, lost: z.int().min(1) }),
])
export type AgentTelemetryRecord = z.infer<typeof AgentTelemetryRecord>

/** Like `followAgentEvents`, for the telemetry of the session. */
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
  summary: 'Acknowledge telemetry events',
  tag,
  access: 'internal',
  body: z.object({ sequence: Sequence }),
  status: 204,
  errors: [],
})

/** Reports that the kernel killed processes of the machine, which only the server can see. */
export const reportMemoryKills = defineEndpoint({
  ...agentRoutes.reportMemoryKills,
  operationId: 'reportMemoryKills',
  summary: 'Report processes that the kernel killed for lack of memory',
  tag,
  access: 'internal',
  body: z.object({ processes: z.int().min(1) }),
  status: 204,
  errors: [],
})

/** The outcome of a task. */
export const CaptchaOutcome = z.discriminatedUnion('status', [
  z.object({ status: z.literal('solved'), token: z.string() }),
  z.object({ status: z.literal('failure'), error_code: z.string() }),
  z.object({ status: z.literal('timeout') }),
])
export type CaptchaOutcome = z.infer<typeof CaptchaOutcome>

/** Gives the agent the solution of a captcha, which it enters in the page. Succeeds for a task that is over. */
export const answerCaptcha = defineEndpoint({
  ...agentRoutes.answerCaptcha,
  operationId: 'answerCaptcha',
  summary: 'Solve a captcha',
  tag,
  access: 'internal',
  body: z.object({ task_id: z.string(), outcome: CaptchaOutcome }),
  status: 204,
  errors: [],
})

/** Closes the connections of CDP clients, so that telemetry contains their disconnects before the session ends. */
export const endClients = defineEndpoint({
  ...agentRoutes.endClients,
  operationId: 'endClients',
  summary: 'Close the connections of CDP clients',
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
  summary: 'Stop the browser and the agent',
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

/** What can change while a browser runs, except its profile and its extensions, which are sent as streams. */
export const BrowserConfiguration = z.object({
  viewport: BrowserViewport.required().optional(),
  /** Whether to change the size even while a live view is open. */
  force: z.boolean().optional(),
  /**
   * For a headful browser. A changed value relaunches the browser without any state, so it is only for a browser that
   * nobody has used.
   */
  kiosk_mode: z.boolean().optional(),
  /** For a browser that has not been launched yet. */
  stealth: z.boolean().optional(),
  /** Set before the first launch, when the policies have changed since the start of the machine. */
  has_new_policies: z.boolean().optional(),
  /** Launches a browser that waits for a profile without one. */
  launch: z.boolean().optional(),
  /**
   * Whether to respond before the size and the page have changed. Clients of the browser then wait until they have.
   * Only for a browser that nobody has used: if its size cannot be changed, it is relaunched with the new one.
   */
  clients_wait: z.boolean().optional(),
  /** The agent loads the code that the next requests will need. */
  rehearse: z.boolean().optional(),
  /** The page to open in the visible tab. */
  start_url: z.string().optional(),
  /** Null captures nothing. */
  telemetry: TelemetryCapture.nullable().optional(),
  /** Whether a new server repeats what the session already has. This does not count as activity. */
  is_restore: z.boolean().optional(),
})
export type BrowserConfiguration = z.infer<typeof BrowserConfiguration>

/**
 * Changes the browser. Responds when the size and the mode are set and the navigation has started. Settings that
 * already apply are skipped. Before the launch of the browser, the agent stores the settings for it.
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

/** The id of a recording, which the server assigns. */
const RecordingId = z.string()

/**
 * Records the screen and responds with fragmented MP4 while it is encoded. The response headers are sent with the first
 * frame. A client that disconnects before the end stops the recording.
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

/**
 * Ends a recording: the response of `recordScreen` ends after the last frame. Succeeds for a recording that has ended.
 */
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

/** Takes a small picture of the page in front. Unlike the operations, it does not count as activity of the session. */
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
 * Fetches a page with the cookies and the network route of the browser. `curl` returns the response as it was sent;
 * `render` loads it in a temporary tab without a window until the page is idle. A client that disconnects cancels the
 * request.
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
    /** Longer content is truncated. */
    max_bytes: z.int(),
  }),
  reply: z.object({
    status: z.int(),
    content_type: z.string().nullable(),
    final_url: z.string(),
    body_b64: z.string(),
    is_cut: z.boolean(),
    /** For a rendered page: whether it had loaded before the timeout. */
    is_loaded: z.boolean(),
  }),
  status: 200,
  errors: ['curl_failed'],
})
export type FetchPageRequest = z.output<typeof fetchPage.body & {}>
export type FetchPageReply = z.output<typeof fetchPage.reply & {}>
