import type { ServerConfig } from './config.ts'

interface ReadyFacts {
  readonly config: ServerConfig
  readonly port: number
  /** Shown on the first start, and whenever it is configured. berth itself stores only a hash. */
  readonly apiKey: string | undefined
  /** Of the link that signs in to the dashboard once. Only on the first start. */
  readonly signInCode: string | undefined
}

/** Reports the address of berth: one JSON line for programs, a few lines for people. */
export function announceReady({ config, port, apiKey, signInCode }: ReadyFacts): void {
  const baseUrl = config.publicUrl ?? `http://${reachableHost(config.host)}:${port}`
  // The code is in the fragment, which browsers do not send: it stays out of logs.
  const dashboardUrl = `${baseUrl}/dashboard${signInCode === undefined ? '' : `#code=${signInCode}`}`
  if (config.json) {
    const ready = {
      event: 'ready',
      base_url: baseUrl,
      api_key: apiKey ?? null,
      dashboard_url: dashboardUrl,
      pid: process.pid,
    }
    process.stdout.write(`${JSON.stringify(ready)}\n`)
    return
  }
  const lines = [`berth is ready at ${baseUrl}`, `  Dashboard   ${dashboardUrl}`, `  API pages   ${baseUrl}/docs`]
  if (apiKey !== undefined && config.apiKey === undefined) {
    lines.push(`  API key     ${apiKey}`, '              It is shown this once; berth keeps only its hash.')
    lines.push('              The link to the dashboard signs in once, within a day.')
  }
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** An address that listens on all interfaces is reachable at loopback from here. */
function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
