import { randomBytes } from 'node:crypto'
import { deriveKey } from '../../access/secrets.ts'
import type { Database } from '../../database/database.ts'
import { seal, unseal } from '../../secrets/seal.ts'
import { CertificateAuthority } from './certificates.ts'

const context = 'authority of the installation'

/** All servers on one database. */
export interface Installation {
  readonly name: string
  readonly authority: CertificateAuthority
}

/** The installation of the database, which the first server creates. Concurrent callers get the one that was stored. */
export async function openInstallation(database: Database, masterKey: string, now: Date): Promise<Installation> {
  const key = deriveKey(masterKey, 'installation')
  const made = await CertificateAuthority.create(now)
  const columns = ['name', 'certificate', 'sealed_key'] as const
  await database
    .insertInto('installation')
    .values({
      name: randomBytes(6).toString('hex'),
      certificate: made.certificate,
      sealed_key: seal(key, made.key, context),
    })
    .onConflict((conflict) => conflict.column('is_only').doNothing())
    .execute()
  const { name, certificate, sealed_key } = await database
    .selectFrom('installation')
    .select(columns)
    .executeTakeFirstOrThrow()
  const authorityKey = new Uint8Array(unseal(key, sealed_key, context))
  return { name, authority: await CertificateAuthority.load(certificate, authorityKey) }
}
