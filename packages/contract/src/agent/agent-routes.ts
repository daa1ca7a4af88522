import type { Route } from '../route.ts'
import {
  agentDiscoveryPath,
  agentExtensionsPath,
  agentOperationsPath,
  agentProfilePath,
  agentWebDriverPath,
} from './agent-protocol.ts'
import { loginRoutes } from './login/login-routes.ts'

/**
 * Every request that the agent serves. Its WebSockets are in `agent-upgrades.ts`. The schemas are in
 * `agent-endpoints.ts`, because the agent loads this file at every start of a session.
 */
export const agentRoutes = {
  readState: { method: 'GET', path: '/state' },
  followState: { method: 'GET', path: '/state/stream', isStream: true },
  followEvents: { method: 'GET', path: '/events', isStream: true },
  acknowledgeEvents: { method: 'POST', path: '/events/acknowledgement' },
  followTelemetry: { method: 'GET', path: '/telemetry/events', isStream: true },
  acknowledgeTelemetry: { method: 'POST', path: '/telemetry/acknowledgement' },
  reportMemoryKills: { method: 'POST', path: '/telemetry/memory-kills' },
  answerCaptcha: { method: 'POST', path: '/captcha/answer' },
  endClients: { method: 'POST', path: '/clients/end' },
  stop: { method: 'POST', path: '/stop' },
  configure: { method: 'POST', path: '/configuration' },
  fetchPage: { method: 'POST', path: '/page' },
  takeThumbnail: { method: 'POST', path: '/thumbnail' },
  findFormFields: { method: 'POST', path: '/form-fields' },
  fillFormFields: { method: 'POST', path: '/form-fields/values' },
  makeSealingKey: { method: 'POST', path: '/sealing-keys' },
  ...loginRoutes,
  record: { method: 'POST', path: '/recordings' },
  endRecording: { method: 'POST', path: '/recordings/end' },
  loadProfile: { method: 'PUT', path: agentProfilePath },
  giveOutProfile: { method: 'POST', path: agentProfilePath },
  takeProfileBack: { method: 'DELETE', path: agentProfilePath },
  takeExtensions: { method: 'POST', path: agentExtensionsPath },
  operation: { path: `${agentOperationsPath}/` },
  webDriver: { path: `${agentWebDriverPath}/` },
  discover: { path: agentDiscoveryPath },
  discoverBelow: { path: `${agentDiscoveryPath}/` },
  readDevToolsFile: { method: 'GET', path: '/devtools/' },
} as const satisfies Readonly<Record<string, Route & { readonly isStream?: true }>>
