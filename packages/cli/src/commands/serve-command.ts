import type { ServeFlags } from '@berth/server/config.ts'
import type { Command } from 'commander'
import { installSystemPackages } from '../setup/install-system-packages.ts'
import { installUv } from '../setup/install-uv.ts'

/** The flags have no defaults here. The server defines them, and gives flags precedence over environment variables. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .summary('start the server of this machine')
    .description(
      'Starts the server of this machine. It installs what is missing, serves until Ctrl-C or SIGTERM, and leaves its ' +
        'sessions running when it stops: the next start adopts them.',
    )
    .option('--port <number>', 'port of the API; 0 picks a free one (BERTH_PORT; default: 8080)')
    .option('--host <address>', 'address to listen on (BERTH_HOST; default: 127.0.0.1)')
    .option('--data-dir <folder>', 'folder for all data (BERTH_DATA_DIR; default: ~/.berth)')
    .option('--server-address <url>', 'address of this server for others on the same database (BERTH_SERVER_ADDRESS)')
    .option('--json', 'one JSON line on stdout when ready, JSON logs on stderr (BERTH_JSON)')
    .option('--stop-sessions', 'end the sessions when the server stops (BERTH_STOP_SESSIONS)')
    .option('--metrics', 'serve Prometheus metrics at /metrics (BERTH_METRICS; default: on)')
    .option('--no-metrics', 'do not')
    .option('--log-level <level>', 'trace, debug, info, warn, error, fatal or silent (BERTH_LOG_LEVEL; default: info)')
    .addHelpText('after', environmentHelp)
    .action(serveHost)
}

const environmentHelp = `
Environment only:
  BERTH_API_KEY          use this API key instead of making one at the first start
  BERTH_PUBLIC_URL       where clients reach berth, if it is not where they ask
  BERTH_BLOBS_FOLDER     a folder for profiles and extensions that several servers share
  BERTH_MASTER_KEY       encrypts secrets (default: a file in the data folder)
  BERTH_EGRESS_ALLOW     hosts, host:port or CIDRs, with commas, that sessions may reach besides public addresses
  BERTH_RESERVED_MEMORY_MIB  memory that new sessions leave to the host (default: 256)
  BERTH_RESERVED_DISK_MIB    disk that new sessions leave to the data folder (default: 256)
  BERTH_MAX_SESSIONS     sessions at once of an organization that has no limit of its own (default: 1000)
  BERTH_RATE_LIMIT       POST /browsers per minute and organization; 0 is no limit (default: 1200)
  BERTH_ONEPASSWORD_CONNECT_URL  the 1Password Connect server of credential providers
  BERTH_AUDIT_DAYS       how long entries of the audit log are kept (default: 365)
  BERTH_AUDIT_EXPORT_BUCKETS  buckets, with commas, that organizations may export their audit log to
  BERTH_PROJECTS         whether callers may see and make projects: on or off (default: on)
  BERTH_DRIVER           what runs the machines of sessions: local or kubernetes (default: local)
  BERTH_REGION           us-east, us-west, eu-west or ap-southeast (default: us-east)
  DATABASE_URL           a PostgreSQL to use instead of berth's own`

async function serveHost(flags: ServeFlags): Promise<void> {
  // Machines in pods have everything in their image, and need nothing on this host.
  const hasMachines = process.env.BERTH_DRIVER?.trim() !== 'kubernetes'
  if (hasMachines) {
    await installSystemPackages({ demand: 'required', withTests: false })
    await installUv({ demand: 'required' })
  }

  // Imported on demand, so that other commands do not load the server.
  const [{ serve }, { requireHost }] = await Promise.all([
    import('@berth/server/main.ts'),
    import('@berth/server/host-checks/host-checks.ts'),
  ])
  if (hasMachines) await requireHost()
  await serve(flags)
}
