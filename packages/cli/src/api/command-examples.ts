import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { Command } from 'commander'
import type { FieldFlag } from './operation-flags.ts'
import { operationName } from './operation-names.ts'

/** Arguments for commands whose parameters and required flags alone would make a poor example. */
const examples: Readonly<Record<string, string>> = {
  createBrowser: '--name shop --start-url https://example.com --timeout-seconds 600 --tags team=qa',
  listBrowsers: '--status all --query shop -o json',
  getBrowserLiveView: 'shop --open',
  updateBrowser: 'shop --tags env=test --viewport-width 1280 --viewport-height 800',
  takeScreenshot: 'shop --output-file shop.png',
  dragMouse: "shop --path '[[100,100],[300,200]]'",
  scroll: 'shop --x 640 --y 400 --delta-y 3',
  setCursor: 'shop --hidden',
  batchComputerAction: `shop --actions '[{"type":"click_mouse","click_mouse":{"x":640,"y":400}}]'`,
  snapshotPage: 'shop --interactive',
  navigatePage: 'shop --url https://example.com',
  waitForPage: 'shop --text "Thank you"',
  takeMarkedScreenshot: 'shop --marks -o json',
  openTab: 'shop --url https://example.com',
  executePlaywrightCode: "shop 'return page.title()'",
  runRepl: "shop '1 + 1'",
  invokeWebMcpTool: `shop --tool-ref TOOL_REF --input '{"query":"shoes"}'`,
  addCustomWebMcpTools: 'shop --namespace orders --source @tools.js',
  writeFile: 'shop --path /tmp/list.csv --file list.csv',
  readFile: 'shop --path /tmp/list.csv --output-file list.csv',
  downloadDirZip: 'shop --path /tmp/site --output-file site.zip',
  setFilePermissions: 'shop --path /tmp/run.sh --mode 755',
  uploadFiles: 'shop --files file=list.csv,dest_path=/tmp/list.csv',
  uploadZip: 'shop --zip-file site.zip --dest-path /tmp/site',
  executeCommand: 'shop ls -- -la /tmp',
  spawnProcess: 'shop sleep -- 60',
  killProcess: 'shop PROCESS_ID --signal TERM',
  streamLogs: 'shop --source path --path /tmp/app.log',
  getDownload: 'shop report.pdf --output-file report.pdf',
  startReplay: 'shop --framerate 10 --max-duration-in-seconds 300',
  downloadReplay: 'shop REPLAY_ID --output-file replay.mp4',
  streamTelemetry: 'shop --type console_log',
  listTelemetryEvents: 'shop --limit 100 -o json',
  loadExtensions: 'shop --extensions name=blocker,zip_file=extension.zip',
  createBrowserPool: '--name warm --size 5 --headless',
  updateBrowserPool: 'warm --size 10',
  acquireBrowser: 'warm --acquire-timeout-seconds 30',
  createDeployment: '--file app.zip --entrypoint-rel-path index.ts --wait',
  createInvocation: `--app-name shop --action-name buy --payload '{"item":1}' --async --wait`,
  updateInvocation: 'ID --status failed',
  createProfile: '--name shopper',
  downloadProfile: 'shopper --output-file shopper.tar',
  uploadExtension: '--file extension.zip --name blocker',
  downloadExtension: 'blocker --output-file blocker.zip',
  downloadExtensionFromChromeStore:
    '--url https://chromewebstore.google.com/detail/x/abcdefghijklmnopabcdefghijklmnop --output-file extension.zip',
  createProxy: '--type custom --name office --config-host proxy.example.com --config-port 3128',
  createCredential: '--name shop-login --domain shop.example.com --values username=ann --values password=@password.txt',
  updateCredential: 'shop-login --values password=@password.txt',
  createCredentialProvider: '--provider-type onepassword --name vaults --token @token.txt',
  updateCredentialProvider: 'ID --no-enabled',
  createAuthConnection: '--domain shop.example.com --profile-name shopper --credential-name shop-login',
  updateAuthConnection: 'ID --health-check-interval 3600',
  submitAuthConnection: 'ID --fields username=ann --fields password=@password.txt',
  upsertVault: '--name logins',
  upsertVaultItem: `logins shop --data '{"type":"credential","spec":{"provider":"kernel","fields":[{"name":"user","type":"text"}]}}'`,
  updateVaultItem: `logins shop --data '{"spec":{"provider":"kernel","description":"The shop"}}'`,
  performVaultItemOperation: 'logins shop --data @fill.json',
  createVaultProviderConfig: '--data @config.json',
  updateVaultProviderConfig: 'payments --name other',
  createSearch: "'opening hours'",
  createProject: '--name staging',
  createApiKey: '--name ci',
  updateApiKey: 'ID --name ci',
  createWebhook: '--url https://example.com/hook',
  exchangeHandoffCode: 'ID --code CODE',
  updateProjectLimits: 'staging --max-concurrent-sessions 10',
  updateProject: 'staging --name tests',
  rotateApiKey: 'ID --days-to-expire 90',
  createExportDestination:
    '--type s3 --format jsonl.gz --region us-east-1 --bucket logs --prefix berth --role-arn arn:aws:iam::123456789012:role/berth',
  updateExportDestination: 'ID --status paused',
  exportAuditLogChunk: '--start 2026-01-01T00:00:00Z --end 2026-01-02T00:00:00Z --output-file audit.jsonl',
  createOtlpDestination: '--name collector --endpoint https://otlp.example.com',
  updateOtlpDestination: 'collector --description "The collector of the team"',
  updateWebhook: 'ID --no-enabled',
  updateOrgLimits: '--default-project-max-concurrent-sessions 50',
}

/** Example values of parameters and fields, by name. */
const values: Readonly<Record<string, string>> = {
  x: '640',
  y: '400',
  url: 'https://example.com',
  text: 'hello',
  keys: 'Ctrl+A',
  key: 'Enter',
  ref: 'e5',
  path: '/tmp/list.csv',
  paths: '/tmp/list.csv',
  values: 'blue',
  size: '5',
  rows: '24',
  cols: '80',
  start: '2026-01-01T00:00:00Z',
  end: '2026-01-02T00:00:00Z',
  'src-path': '/tmp/list.csv',
  'dest-path': '/tmp/old.csv',
  'data-b64': 'eWVzCg==',
  'session-id': 'SESSION_ID',
  code: 'CODE',
}

/** Example names, by group of commands. */
const names: Readonly<Record<string, string>> = {
  browsers: 'shop',
  'browser-pools': 'warm',
  profiles: 'shopper',
  extensions: 'blocker',
  proxies: 'office',
  credentials: 'shop-login',
  vaults: 'logins',
  'vault-provider-configs': 'payments',
  projects: 'staging',
  telemetry: 'collector',
}

/** Adds an example to the command's help. */
export function withExample(command: Command, ...words: readonly string[]): Command {
  return command.addHelpText('after', `\nExample:\n  berth ${words.filter(Boolean).join(' ')}`)
}

/** An example for the command of an operation: a handwritten one, or one with all required arguments. */
export function exampleOf(endpoint: Endpoint, all: readonly Endpoint[], flags: readonly FieldFlag[]): string {
  const { words, positional } = operationName(endpoint, all)
  const written = examples[endpoint.operationId]
  if (written !== undefined) return [...words, written].join(' ')
  const name = names[words[0] ?? ''] ?? 'new'
  const params = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, param = '']) =>
    param === 'id_or_name' ? name : param === 'key' ? 'shop' : (values[param] ?? param.toUpperCase()),
  )
  const exampleValue = (flag: FieldFlag) => values[flag.name] ?? flag.choices[0] ?? name
  const needed = flags.filter(({ isRequired }) => isRequired)
  const given = needed.flatMap((flag) => (positional.includes(flag.name) ? [exampleValue(flag)] : []))
  const others = needed.flatMap((flag) =>
    positional.includes(flag.name) ? [] : [`--${flag.name} ${exampleValue(flag)}`],
  )
  return [...words, ...params, ...given, ...others].join(' ')
}

/** The operations with a handwritten example, to detect those that no longer exist. */
export const writtenExamples = Object.keys(examples)
