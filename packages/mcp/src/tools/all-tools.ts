import type { DocsSearch } from '../docs-search.ts'
import type { Tool } from '../tool.ts'
import { manageAuthConnections } from './auth-tools.ts'
import { manageBrowsers } from './browser-tools.ts'
import { contextTool } from './context-tool.ts'
import { docsTool } from './docs-tool.ts'
import { resourceTools } from './resource-tools.ts'
import { sessionTools } from './session-tools.ts'

export function allTools(docs: DocsSearch): readonly Tool[] {
  return [contextTool, manageBrowsers, manageAuthConnections, ...resourceTools, ...sessionTools, docsTool(docs)]
}

const files = 'exec_command and execute_playwright_code read and write files'
const people = 'for people and their programs: berth on the command line'
const secrets = 'needs encrypted values, which a model must not handle'
const streams = 'a stream; a tool answers once'

/** Why an operation has no tool, by operation or by tag. scripts/check-lists.ts reads it. */
export const withoutTool: Readonly<Record<string, string>> = {
  'Browser Filesystem': files,
  'Browser Downloads': files,
  'Browser Processes': 'exec_command runs programs to their end',
  'Browser REPL': 'execute_playwright_code runs code',
  'Browser WebMCP': 'the tools of a page come by its own means',
  'Browser Logs': streams,
  'Browser Computer Controls': 'computer_action does it in a batch',
  listPlaywrightExecutors: 'execute_playwright_code uses the default executor',
  deletePlaywrightExecutor: 'execute_playwright_code uses the default executor',
  streamTelemetry: streams,
  followAuthConnection: streams,
  exchangeHandoffCode: 'the page of a person does it',
  followDeployment: streams,
  followInvocation: streams,
  downloadReplay: people,
  createDeployment: people,
  listInvocations: 'manage_apps finds an invocation by its id',
  updateInvocation: people,
  deleteInvocationBrowsers: people,
  loadExtensions: people,
  uploadExtension: people,
  downloadExtension: people,
  downloadExtensionFromChromeStore: people,
  getExtension: people,
  downloadProfile: people,
  rotateApiKey: 'the new key would be in the history of the model',
  Vaults: secrets,
  'Vault Items': secrets,
  'Vault Provider Configs': secrets,
  Search: people,
  'Config Registry': people,
  'Audit Logs': people,
  'Telemetry Destinations': people,
  Organization: people,
  Service: people,
}
