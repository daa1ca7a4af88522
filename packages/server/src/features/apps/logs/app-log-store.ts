import type { DeploymentId, InvocationId } from '@berth/contract/common/ids.ts'
import type { Insertable, Selectable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { AppLogTable } from '../../../database/tables.ts'

export type LogLine = Pick<Selectable<AppLogTable>, 'id' | 'message' | 'created_at'>

/** The build or invocation that wrote the lines. */
export type LogOwner = { readonly deploymentId: DeploymentId } | { readonly invocationId: InvocationId }

const linesPerRead = 200

export class AppLogStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(lines: readonly Insertable<AppLogTable>[]): Promise<void> {
    if (lines.length > 0) await this.#database.insertInto('app_logs').values(lines).execute()
  }

  /** The next lines, oldest first. */
  async read(owner: LogOwner, after: number, since: Date | undefined): Promise<readonly LogLine[]> {
    let query = this.#database
      .selectFrom('app_logs')
      .select(['id', 'message', 'created_at'])
      .where((where) =>
        'deploymentId' in owner
          ? where('deployment_id', '=', owner.deploymentId)
          : where('invocation_id', '=', owner.invocationId),
      )
      .where('id', '>', after)
    if (since) query = query.where('created_at', '>=', since)
    const lines = await query.orderBy('id').limit(linesPerRead).execute()
    return lines.map((line) => ({ ...line, id: Number(line.id) }))
  }

  async removeOld(before: Date): Promise<void> {
    await this.#database.deleteFrom('app_logs').where('created_at', '<', before).execute()
  }
}
