import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration'
import type { Database } from './database.ts'

const migrationsFolder = join(import.meta.dirname, 'migrations')

/**
 * Migrates the database to the newest version, forward only. Servers that start at the same time wait for each other. A
 * server of the previous version can start next to newer ones although it lacks their migrations: these keep everything
 * that it uses.
 */
export async function migrate(database: Database): Promise<void> {
  const migrator = new Migrator({ db: database, provider: { getMigrations: () => readMigrations(database) } })
  const { error } = await migrator.migrateToLatest()
  if (error) throw error
}

async function readMigrations(database: Database): Promise<Record<string, Migration>> {
  const files = (await readdir(migrationsFolder)).filter((file) => file.endsWith('.sql')).toSorted()
  const migrations = files.map(async (file): Promise<[string, Migration]> => {
    const text = await readFile(join(migrationsFolder, file), 'utf8')
    return [file.slice(0, -'.sql'.length), { up: async (database) => void (await sql.raw(text).execute(database)) }]
  })
  const own = await Promise.all(migrations)
  const [newest = ''] = own.at(-1) ?? []
  return Object.fromEntries([...own, ...(await listDone(database)).filter((name) => name > newest).map(ofNewerServer)])
}

/** Called while Kysely holds the lock of migrations. */
async function listDone(database: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ has_table: boolean }>`
    select to_regclass(${DEFAULT_MIGRATION_TABLE}) is not null as has_table`.execute(database)
  if (!rows[0]?.has_table) return []
  const done = await sql<{ name: string }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(database)
  return done.rows.map(({ name }) => name)
}

function ofNewerServer(name: string): [string, Migration] {
  return [name, { up: () => Promise.reject(new Error(`the migration ${name} is that of a newer version`)) }]
}
