import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { ServerStore } from '../../features/servers/server-store.ts'
import { StartError } from '../../start-error.ts'
import type { SharedBlobs } from '../shared-blobs.ts'

/** An arbitrary number that no other advisory lock uses. */
const lockNumber = 7_304
const pauseMilliseconds = 500

interface JoinOptions {
  readonly database: Database
  readonly servers: Pick<ServerStore, 'listPresent'>
  readonly sharedBlobs: Pick<SharedBlobs, 'compare'>
  readonly serverId: string
  readonly address: string
  readonly keyCheck: string
  /** How long to wait for a killed server at the same address to count as gone. */
  readonly patienceSeconds?: number
  /** Registers this server. */
  readonly appear: () => Promise<void>
}

/**
 * Registers the server with the others of its database, or reports what must change before it can join. Servers join
 * one at a time, so of two incompatible ones that start together, one is rejected.
 */
export async function joinServers(options: JoinOptions): Promise<void> {
  const deadline = performance.now() + 1000 * (options.patienceSeconds ?? 0)
  while (!(await join(options, performance.now() < deadline))) await delay(pauseMilliseconds)
}

/** Returns false if another server still counts as running at this address and this one may wait. */
function join(options: JoinOptions, mayWait: boolean): Promise<boolean> {
  return options.database.transaction().execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(${lockNumber})`.execute(transaction)
    if (mayWait && (await hasTwin(options))) return false
    await requireFit(options)
    await options.appear()
    return true
  })
}

async function hasTwin({ servers, serverId, address }: JoinOptions): Promise<boolean> {
  return (await servers.listPresent()).some((server) => server.id !== serverId && server.address === address)
}

async function requireFit({ servers, sharedBlobs, serverId, address, keyCheck }: JoinOptions): Promise<void> {
  const present = await servers.listPresent()
  const others = present.filter(({ id }) => id !== serverId)
  const twin = others.find((other) => other.address === address)
  if (twin) {
    throw new StartError(
      `BERTH_SERVER_ADDRESS ${address} is already used by the server ${twin.id}: each server needs its own`,
      64,
    )
  }
  if (others.some((other) => other.keyCheck !== null && other.keyCheck !== keyCheck)) {
    throw new StartError('BERTH_MASTER_KEY differs from that of the other servers of this database', 64)
  }
  if (await sharedBlobs.compare({ isFirst: others.length === 0 })) return
  throw new StartError(
    'this server uses other blobs than the other servers of this database: set BERTH_BLOBS and its settings ' +
      '(bucket, endpoint and prefix, or BERTH_BLOBS_FOLDER) to the same values',
    64,
  )
}
