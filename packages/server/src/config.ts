import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Region } from '@berth/contract/browsers/browser.ts'
import { parseAllowList } from '@berth/contract/egress/allow-list.ts'
import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import { minHealthCheckSeconds } from '@berth/contract/managed-auth/connection.ts'
import { parseToolsets, type Toolset } from '@berth/mcp/toolsets.ts'
import { type OAuthConfig, readOAuthConfig } from './access/oauth/oauth-config.ts'
import type { BlobsConfig } from './blobs/open-blobs.ts'
import { defaultWaitSeconds } from './database/database.ts'
import { type DriverName, driverNames, sharedDrivers } from './drivers/driver-names.ts'
import type { DriverOptions } from './drivers/driver-options.ts'
import { readKubernetesOptions } from './drivers/kubernetes-options.ts'
import type { AuditExportConfig } from './features/audit-export/lazy-s3-target.ts'
import type { ConfigRegistryConfig } from './features/config-registry/config-registry-service.ts'
import type { OnePasswordOptions } from './features/credential-providers/onepassword-client.ts'
import type { LimitsConfig } from './features/limits/limit-service.ts'
import { type ProxyPools, parseProxyPools, parseUpstream } from './features/proxies/proxy-pools.ts'
import type { ProxyingConfig } from './features/proxies/proxying-config.ts'
import type { SearchConfig } from './features/search/providers/known-providers.ts'
import { readSearchConfig } from './features/search/search-config.ts'
import type { CaptchaSolverConfig } from './features/sessions/captchas/solver-client.ts'
import type { DownloadsConfig } from './features/sessions/downloads/download-service.ts'
import type { ReplaysConfig } from './features/sessions/replays/replay-service.ts'
import { reserveKinds } from './features/sessions/reserve/reserve-kind.ts'
import { parseReserve, type ReserveConfig } from './features/sessions/reserve/reserve-plan.ts'
import { type ConnectionLimits, defaultConnectionLimits } from './ingress/connection-limits.ts'
import type { ModelConfig } from './models/model-client.ts'
import { StartError } from './start-error.ts'

/** Flags as typed. Each has an environment variable, over which the flag takes precedence. */
export interface ServeFlags {
  readonly port?: string | undefined
  readonly host?: string | undefined
  readonly dataDir?: string | undefined
  readonly serverAddress?: string | undefined
  readonly json?: boolean | undefined
  readonly stopSessions?: boolean | undefined
  readonly metrics?: boolean | undefined
  readonly logLevel?: string | undefined
}

export interface ServerConfig {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  readonly dataFolder: string
  /** Writes the ready message and logs as JSON, for programs that start berth. */
  readonly json: boolean
  /** Whether stopping the server ends its sessions. */
  readonly stopSessions: boolean
  /** How long requests and WebSockets of clients may continue when the server stops. */
  readonly drainSeconds: number
  readonly metrics: boolean
  readonly logLevel: string
  readonly connectionLimits: ConnectionLimits
  /** A key of the default organization, instead of a generated one. */
  readonly apiKey: string | undefined
  /** The URL at which clients reach berth, without a trailing slash. Defaults to the host of each request. */
  readonly publicUrl: string | undefined
  /** The address where other servers of the database reach this one. When absent, there are no others. */
  readonly serverAddress: string | undefined
  /** When absent, berth runs its own PostgreSQL. */
  readonly databaseUrl: string | undefined
  /** How long a query waits for a connection while all of them are in use. */
  readonly databaseWaitSeconds: number
  /** When absent, it is in a file in the data folder. */
  readonly masterKey: string | undefined
  /** Whether callers may list and create projects. */
  readonly hasProjects: boolean
  readonly limits: LimitsConfig
  readonly configRegistry: ConfigRegistryConfig
  /** How long the machine of an app is kept after its last invocation. */
  readonly warmAppSeconds: number
  /** The URL of the host of app repositories. */
  readonly gitHubUrl: string
  /** How many deployments this server builds at once. */
  readonly buildsAtOnce: number
  /** When absent, analyses do not try intents. */
  readonly model: ModelConfig | undefined
  /** Decides how to continue a login when the page is ambiguous. */
  readonly loginModel: ModelConfig | undefined
  /** When absent, captchas are not solved. */
  readonly captchaSolver: CaptchaSolverConfig | undefined
  readonly auditRetentionDays: number
  readonly auditExport: AuditExportConfig
  readonly telemetryRetentionDays: number
  readonly webhookRetentionDays: number
  readonly onePassword: OnePasswordOptions
  readonly search: SearchConfig
  readonly replays: ReplaysConfig
  readonly downloads: DownloadsConfig
  /** Where profiles and extensions are stored. */
  readonly blobs: BlobsConfig
  /** The address from which the Chrome Web Store serves extensions. */
  readonly chromeStoreUrl: string
  readonly egressAllow: readonly string[]
  readonly proxying: ProxyingConfig
  /** The driver that runs the machines. */
  readonly driver: DriverName
  readonly machines: DriverOptions
  /** Whether sessions without activity are frozen. */
  readonly hasStandby: boolean
  /** When absent, only API keys are accepted. */
  readonly oauth: OAuthConfig | undefined
  /** Toolsets of MCP that are not offered. */
  readonly disabledToolsets: ReadonlySet<Toolset>
  /** How many machines are started in advance. */
  readonly reserve: ReserveConfig
  /** The region that this server runs in. */
  readonly region: Region
  /** The runtime folder for sockets of an ordinary user. */
  readonly userRuntimeFolder: string | undefined
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const minSecretLength = 16
const captchaLimitMilliseconds = 120_000
const defaultChromeStoreUrl = 'https://clients2.google.com/service/update2/crx'

/** Reads flags and environment. Throws a StartError that names the flag or variable and its rule. */
export function readConfig(flags: ServeFlags, environment: NodeJS.ProcessEnv = process.env): ServerConfig {
  const text = (name: string) => environment[name]?.trim() || undefined
  const driver = oneOf('BERTH_DRIVER', text('BERTH_DRIVER') ?? 'local', driverNames)
  const address = serverAddress(flags.serverAddress ?? text('BERTH_SERVER_ADDRESS'))
  if (address !== undefined) requireSharedParts(text)
  return {
    host: flags.host ?? text('BERTH_HOST') ?? '127.0.0.1',
    port: portNumber(flags.port ?? text('BERTH_PORT') ?? '8080'),
    dataFolder: resolve(flags.dataDir ?? text('BERTH_DATA_DIR') ?? join(homedir(), '.berth')),
    json: flags.json ?? switchedOn('BERTH_JSON', text('BERTH_JSON'), false),
    stopSessions: flags.stopSessions ?? switchedOn('BERTH_STOP_SESSIONS', text('BERTH_STOP_SESSIONS'), false),
    drainSeconds: wholeNumber('BERTH_DRAIN_SECONDS', text('BERTH_DRAIN_SECONDS') ?? defaultDrainSeconds(driver), 0),
    metrics: flags.metrics ?? switchedOn('BERTH_METRICS', text('BERTH_METRICS'), true),
    logLevel: oneOf('--log-level', flags.logLevel ?? text('BERTH_LOG_LEVEL') ?? 'info', logLevels),
    connectionLimits: {
      total: count('BERTH_MAX_CONNECTIONS', text('BERTH_MAX_CONNECTIONS'), defaultConnectionLimits.total),
      perAddress: count(
        'BERTH_MAX_CONNECTIONS_PER_ADDRESS',
        text('BERTH_MAX_CONNECTIONS_PER_ADDRESS'),
        defaultConnectionLimits.perAddress,
      ),
    },
    apiKey: secret('BERTH_API_KEY', text('BERTH_API_KEY')),
    publicUrl: publicUrl(text('BERTH_PUBLIC_URL')),
    serverAddress: address,
    databaseUrl: databaseUrl(text('DATABASE_URL')),
    databaseWaitSeconds: wholeNumber(
      'BERTH_DATABASE_WAIT_SECONDS',
      text('BERTH_DATABASE_WAIT_SECONDS') ?? `${defaultWaitSeconds}`,
      1,
    ),
    masterKey: secret('BERTH_MASTER_KEY', text('BERTH_MASTER_KEY')),
    hasProjects: switchedOn('BERTH_PROJECTS', text('BERTH_PROJECTS'), true),
    limits: {
      maxSessions: wholeNumber('BERTH_MAX_SESSIONS', text('BERTH_MAX_SESSIONS') ?? '1000', 1),
      maxInvocations: wholeNumber('BERTH_MAX_INVOCATIONS', text('BERTH_MAX_INVOCATIONS') ?? '100', 1),
      maxInvocationsPerApp: wholeNumber(
        'BERTH_MAX_INVOCATIONS_PER_APP',
        text('BERTH_MAX_INVOCATIONS_PER_APP') ?? '100',
        1,
      ),
      requestsPerMinute: wholeNumber('BERTH_RATE_LIMIT', text('BERTH_RATE_LIMIT') ?? '1200', 0),
      maxAuthConnections: optionalNumber('BERTH_MAX_AUTH_CONNECTIONS', text('BERTH_MAX_AUTH_CONNECTIONS')),
      minHealthCheckSeconds: wholeNumber(
        'BERTH_MIN_HEALTH_CHECK_SECONDS',
        text('BERTH_MIN_HEALTH_CHECK_SECONDS') ?? String(minHealthCheckSeconds),
        minHealthCheckSeconds,
      ),
    },
    configRegistry: {
      atOnce: wholeNumber('BERTH_ANALYSES', text('BERTH_ANALYSES') ?? '2', 0),
      perProject: wholeNumber('BERTH_ANALYSES_PER_PROJECT', text('BERTH_ANALYSES_PER_PROJECT') ?? '10', 1),
      perSiteAndHour: wholeNumber('BERTH_ANALYSES_PER_SITE', text('BERTH_ANALYSES_PER_SITE') ?? '20', 1),
      pauseMilliseconds: 1_000,
    },
    warmAppSeconds: wholeNumber('BERTH_APP_WARM_SECONDS', text('BERTH_APP_WARM_SECONDS') ?? '60', 0),
    gitHubUrl: webAddress('BERTH_GITHUB_URL', text('BERTH_GITHUB_URL')) ?? 'https://github.com',
    buildsAtOnce: wholeNumber('BERTH_BUILDS', text('BERTH_BUILDS') ?? '2', 0),
    model: model('BERTH_MODEL', text),
    loginModel: model('BERTH_LOGIN_MODEL', text),
    captchaSolver: captchaSolver(text),
    auditRetentionDays: wholeNumber('BERTH_AUDIT_DAYS', text('BERTH_AUDIT_DAYS') ?? '365', 1),
    telemetryRetentionDays: wholeNumber('BERTH_TELEMETRY_DAYS', text('BERTH_TELEMETRY_DAYS') ?? '30', 1),
    webhookRetentionDays: wholeNumber('BERTH_WEBHOOK_DAYS', text('BERTH_WEBHOOK_DAYS') ?? '7', 1),
    auditExport: {
      buckets: listOf(text('BERTH_AUDIT_EXPORT_BUCKETS') ?? ''),
      endpoint: webAddress('BERTH_AUDIT_EXPORT_ENDPOINT', text('BERTH_AUDIT_EXPORT_ENDPOINT')),
    },
    onePassword: {
      connectUrl: webAddress('BERTH_ONEPASSWORD_CONNECT_URL', text('BERTH_ONEPASSWORD_CONNECT_URL')),
      limitMilliseconds: 15_000,
    },
    search: readSearchConfig(text),
    replays: {
      retentionDays: wholeNumber('BERTH_REPLAY_DAYS', text('BERTH_REPLAY_DAYS') ?? '7', 1),
      maxBytes: mebibytes('BERTH_REPLAY_MIB', text('BERTH_REPLAY_MIB') ?? '500'),
      maxProjectBytes: mebibytes('BERTH_REPLAYS_PER_PROJECT_MIB', text('BERTH_REPLAYS_PER_PROJECT_MIB') ?? '20480'),
    },
    downloads: {
      retentionDays: wholeNumber('BERTH_DOWNLOAD_DAYS', text('BERTH_DOWNLOAD_DAYS') ?? '7', 1),
      maxBytes: mebibytes('BERTH_DOWNLOADS_MIB', text('BERTH_DOWNLOADS_MIB') ?? '1024'),
    },
    blobs: blobs(text),
    chromeStoreUrl: chromeStoreUrl(text('BERTH_CHROME_STORE_URL')),
    egressAllow: allowList(text('BERTH_EGRESS_ALLOW') ?? ''),
    proxying: {
      pools: proxyPools(text('BERTH_PROXY_POOLS')),
      stealthProxy: stealthProxy(text('BERTH_STEALTH_PROXY')),
      checkUrl: webAddress('BERTH_PROXY_CHECK_URL', text('BERTH_PROXY_CHECK_URL')),
    },
    driver,
    machines: {
      reserve: {
        memoryBytes: mebibytes('BERTH_RESERVED_MEMORY_MIB', text('BERTH_RESERVED_MEMORY_MIB') ?? '256'),
        diskBytes: mebibytes('BERTH_RESERVED_DISK_MIB', text('BERTH_RESERVED_DISK_MIB') ?? '256'),
      },
      diskBytes: mebibytes('BERTH_SESSION_DISK_MIB', text('BERTH_SESSION_DISK_MIB') ?? '8192'),
      hasDiskImages: switchedOn('BERTH_DISK_IMAGES', text('BERTH_DISK_IMAGES'), true),
      kubernetes: readKubernetesOptions(text),
    },
    reserve: reserve(text('BERTH_RESERVE') ?? 'auto'),
    hasStandby: switchedOn('BERTH_STANDBY', text('BERTH_STANDBY'), true),
    oauth: readOAuthConfig(text, publicUrl(text('BERTH_PUBLIC_URL'))),
    disabledToolsets: toolsetsOf('BERTH_MCP_DISABLED_TOOLSETS', text('BERTH_MCP_DISABLED_TOOLSETS')),
    region: oneOf('BERTH_REGION', text('BERTH_REGION') ?? 'us-east', Region.options),
    userRuntimeFolder: text('XDG_RUNTIME_DIR'),
  }
}

function model(prefix: string, text: (name: string) => string | undefined): ModelConfig | undefined {
  const url = webAddress(`${prefix}_URL`, text(`${prefix}_URL`))
  const name = text(`${prefix}_NAME`)
  if (url === undefined) {
    if (name === undefined) return undefined
    throw new StartError(`${prefix}_NAME has no effect without ${prefix}_URL`, 64)
  }
  if (name === undefined) throw new StartError(`${prefix}_URL needs ${prefix}_NAME`, 64)
  return { url, name, key: text(`${prefix}_KEY`) }
}

function captchaSolver(text: (name: string) => string | undefined): CaptchaSolverConfig | undefined {
  const url = webAddress('BERTH_CAPTCHA_SOLVER_URL', text('BERTH_CAPTCHA_SOLVER_URL'))
  const key = text('BERTH_CAPTCHA_SOLVER_KEY')
  if (url !== undefined) return { url, key, limitMilliseconds: captchaLimitMilliseconds }
  if (key === undefined) return undefined
  throw new StartError('BERTH_CAPTCHA_SOLVER_KEY has no effect without BERTH_CAPTCHA_SOLVER_URL', 64)
}

function blobs(text: (name: string) => string | undefined): BlobsConfig {
  const kind = oneOf('BERTH_BLOBS', text('BERTH_BLOBS') ?? 'folder', ['folder', 's3'])
  if (kind === 'folder') {
    const path = text('BERTH_BLOBS_FOLDER')
    if (text('BERTH_S3_BUCKET') === undefined) return { kind, ...(path !== undefined && { path: resolve(path) }) }
    throw new StartError('BERTH_S3_BUCKET has no effect without BERTH_BLOBS=s3', 64)
  }
  if (text('BERTH_BLOBS_FOLDER') !== undefined) {
    throw new StartError('BERTH_BLOBS_FOLDER has no effect with BERTH_BLOBS=s3', 64)
  }
  const endpoint = webAddress('BERTH_S3_ENDPOINT', text('BERTH_S3_ENDPOINT'))
  return {
    kind,
    bucket: matching(
      'BERTH_S3_BUCKET',
      text('BERTH_S3_BUCKET') ?? '',
      /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
      bucketRule,
    ),
    prefix: matching('BERTH_S3_PREFIX', text('BERTH_S3_PREFIX') ?? '', /^[\w./-]{0,200}$/, prefixRule),
    endpoint,
    region: text('BERTH_S3_REGION') ?? text('AWS_REGION') ?? 'us-east-1',
    // Servers other than AWS usually have one host name for all buckets.
    pathStyle: switchedOn('BERTH_S3_PATH_STYLE', text('BERTH_S3_PATH_STYLE'), endpoint !== undefined),
  }
}

const bucketRule = 'must name a bucket: 3 to 63 lower-case letters, digits, dots and hyphens'
const prefixRule = 'may hold letters, digits, and any of ._/-'

function reserve(text: string): ReserveConfig {
  const config = parseReserve(text)
  if (config !== undefined) return config
  const kinds = reserveKinds.join(', ')
  throw new StartError(`BERTH_RESERVE must be off, auto, or counts such as headless=2,headful=1 of ${kinds}`, 64)
}

function matching(name: string, value: string, pattern: RegExp, rule: string): string {
  if (pattern.test(value)) return value
  throw new StartError(`${name} ${rule}`, 64)
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
}

function allowList(text: string): readonly string[] {
  const entries = listOf(text)
  try {
    parseAllowList(entries)
  } catch (cause) {
    throw new StartError(`BERTH_EGRESS_ALLOW: ${(cause as Error).message}`, 64, { cause })
  }
  return entries
}

/**
 * Accepts the JSON itself, or the path of a file that contains it. Error messages never show the content, because it
 * includes passwords.
 */
function proxyPools(text: string | undefined): ProxyPools {
  if (text === undefined) return {}
  try {
    return parseProxyPools(text.startsWith('{') ? text : readFileSync(text, 'utf8'))
  } catch (cause) {
    throw new StartError(`BERTH_PROXY_POOLS: ${(cause as Error).message}`, 64, { cause })
  }
}

function stealthProxy(text: string | undefined): Upstream | undefined {
  if (text === undefined) return undefined
  const upstream = parseUpstream(text)
  if (upstream) return upstream
  throw new StartError(
    'BERTH_STEALTH_PROXY must have the form http://user:password@host:port, or with https or socks5',
    64,
  )
}

function webAddress(name: string, value: string | undefined): string | undefined {
  if (value === undefined || ['http:', 'https:'].includes(URL.parse(value)?.protocol ?? '')) return value
  throw new StartError(`${name} must be an http or https address`, 64)
}

function portNumber(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new StartError('--port must be a whole number from 0 to 65535', 64)
}

function mebibytes(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1024 ** 2
  throw new StartError(`${name} must be a whole number of MiB`, 64)
}

function wholeNumber(name: string, text: string, minimum: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= minimum) return Number(text)
  throw new StartError(`${name} must be a whole number of at least ${minimum}`, 64)
}

function optionalNumber(name: string, text: string | undefined): number | null {
  return text === undefined ? null : wholeNumber(name, text, 0)
}

function count(name: string, value: string | undefined, otherwise: number): number {
  if (value === undefined) return otherwise
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value)
  throw new StartError(`${name} must be a whole number of at least 1`, 64)
}

function switchedOn(name: string, value: string | undefined, otherwise: boolean): boolean {
  if (value === undefined) return otherwise
  if (['1', 'true', 'on', 'yes'].includes(value)) return true
  if (['0', 'false', 'off', 'no'].includes(value)) return false
  throw new StartError(`${name} must be on or off`, 64)
}

function oneOf<const Value extends string>(name: string, value: string, allowed: readonly Value[]): Value {
  if ((allowed as readonly string[]).includes(value)) return value as Value
  throw new StartError(`${name} must be one of ${allowed.join(', ')}`, 64)
}

function secret(name: string, value: string | undefined): string | undefined {
  if (value === undefined || (value.length >= minSecretLength && /^[\x21-\x7e]+$/.test(value))) return value
  throw new StartError(`${name} must have at least ${minSecretLength} visible ASCII characters and no spaces`, 64)
}

function publicUrl(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const url = URL.parse(value)
  if (url && ['http:', 'https:'].includes(url.protocol) && !url.search && !url.hash && !url.username) {
    return url.href.replace(/\/$/, '')
  }
  throw new StartError('BERTH_PUBLIC_URL must be an http or https address without query or credentials', 64)
}

/**
 * With machines of this host, sessions wait for the host's next server, so the drain should be short. Otherwise other
 * servers take over the sessions.
 */
function defaultDrainSeconds(driver: DriverName): string {
  return sharedDrivers.has(driver) ? '20' : '0'
}

function serverAddress(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const url = URL.parse(value)
  const hasMore = url && (url.pathname !== '/' || url.search || url.hash || url.username)
  if (url && ['http:', 'https:'].includes(url.protocol) && !hasMore) return url.origin
  throw new StartError(
    'BERTH_SERVER_ADDRESS must have the form http://host:port or https://host:port, without a path',
    64,
  )
}

/** The settings that must be equal on all servers of a database. `join-servers.ts` compares them. */
function requireSharedParts(text: (name: string) => string | undefined): void {
  const require = (isThere: boolean, reason: string) => {
    if (!isThere) throw new StartError(`BERTH_SERVER_ADDRESS needs ${reason}`, 64)
  }
  require(text('DATABASE_URL') !== undefined, 'DATABASE_URL: the servers share one PostgreSQL')
  require(text('BERTH_MASTER_KEY') !== undefined, 'BERTH_MASTER_KEY: the same one for every server')
  require(text('BERTH_BLOBS') === 's3' ||
    text('BERTH_BLOBS_FOLDER') !==
      undefined, 'BERTH_BLOBS=s3, or in BERTH_BLOBS_FOLDER a folder that every server has: the servers share profiles and extensions')
}

function chromeStoreUrl(value: string | undefined): string {
  const url = URL.parse(value ?? defaultChromeStoreUrl)
  if (url && ['http:', 'https:'].includes(url.protocol) && !url.hash && !url.username) return url.href
  throw new StartError('BERTH_CHROME_STORE_URL must be an http or https address without credentials', 64)
}

function databaseUrl(value: string | undefined): string | undefined {
  if (value === undefined || /^postgres(ql)?:\/\//.test(value)) return value
  throw new StartError('DATABASE_URL must begin with postgres:// or postgresql://', 64)
}

function toolsetsOf(name: string, text: string | undefined): ReadonlySet<Toolset> {
  try {
    return parseToolsets(text ?? '')
  } catch (error) {
    throw new StartError(`${name}: ${(error as Error).message}`, 64)
  }
}
