import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { startFauxqs } from 'fauxqs'
import pg from 'pg'

const bucket = 'berth-shared'
const databaseName = 'shared'

/** A berth with a PostgreSQL of its own. */
interface DatabaseHolder extends AsyncDisposable {
  readonly dataFolder: string
}

/** What several berths on this host share: a database, in the PostgreSQL of another berth, and a bucket. */
export class SharedStorage implements AsyncDisposable {
  readonly database: pg.Client
  readonly #databaseUrl: string
  readonly #s3: Awaited<ReturnType<typeof startFauxqs>>
  readonly #holder: DatabaseHolder

  private constructor(
    holder: DatabaseHolder,
    databaseUrl: string,
    database: pg.Client,
    s3: Awaited<ReturnType<typeof startFauxqs>>,
  ) {
    this.#holder = holder
    this.#databaseUrl = databaseUrl
    this.database = database
    this.#s3 = s3
  }

  static async open(holder: DatabaseHolder): Promise<SharedStorage> {
    const urlOf = await readDatabaseUrl(holder.dataFolder)
    const admin = new pg.Client({ connectionString: urlOf('postgres') })
    await admin.connect()
    await admin.query(`create database ${databaseName}`)
    await admin.end()
    const database = new pg.Client({ connectionString: urlOf(databaseName) })
    database.on('error', () => {})
    await database.connect()
    const s3 = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })
    s3.createBucket(bucket)
    return new SharedStorage(holder, urlOf(databaseName), database, s3)
  }

  get environment(): Readonly<Record<string, string>> {
    return {
      DATABASE_URL: this.#databaseUrl,
      BERTH_MASTER_KEY: 'the-master-key-of-shared-servers',
      BERTH_BLOBS: 's3',
      BERTH_S3_BUCKET: bucket,
      BERTH_S3_ENDPOINT: `http://127.0.0.1:${this.#s3.port}`,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.end()
    await this.#s3.stop()
    await this.#holder[Symbol.asyncDispose]()
  }
}

/** PostgreSQL itself records the folder of its socket. */
async function readDatabaseUrl(dataFolder: string): Promise<(database: string) => string> {
  const [password, process] = await Promise.all([
    readFile(join(dataFolder, 'postgres-password'), 'utf8'),
    readFile(join(dataFolder, 'postgres', 'postmaster.pid'), 'utf8'),
  ])
  const socketFolder = process.split('\n')[4] ?? ''
  return (database) => `postgres://berth:${password}@localhost/${database}?host=${encodeURIComponent(socketFolder)}`
}

/** A free port outside the range from which the system takes ports by itself. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_768)
    const listener = createServer().listen(port, '127.0.0.1')
    const isFree = await once(listener, 'listening').then(
      () => true,
      () => false,
    )
    if (!isFree) continue
    listener.close()
    await once(listener, 'close')
    return port
  }
}
