import type { AnalysisId } from '@berth/contract/common/ids.ts'
import type { MatchScope, Target } from '@berth/contract/config-registry/config-registry.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { Configuration, Run, RunOutcome, Visit } from './analysis.ts'
import { keyOf } from './configurations.ts'
import type { StoredAnalysis } from './stored-analysis.ts'

/** What is known about a configuration within a scope. */
export interface Observed {
  readonly configuration: Configuration
  readonly accessed: number
  readonly blocked: number
  readonly inconclusive: number
  readonly lastObservedAt: Date
  readonly lastSupportedAt: Date | null
  /** The latest conclusive runs, newest first. */
  readonly latest: readonly RunOutcome[]
}

export const judgedForWorking = 3

/** The runs of analyses. The conclusive ones are the known results. */
export class RunStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** A run that is repeated, because a server stopped in between, replaces the earlier one. */
  async add(analysis: StoredAnalysis, { configuration, visit }: Run, now: Date): Promise<void> {
    const seen = { configuration: JSON.stringify(configuration), visit: JSON.stringify(visit), observed_at: now }
    await this.#database
      .insertInto('config_runs')
      .values({
        analysis_id: analysis.id,
        target: analysis.target,
        host: analysis.host,
        domain: analysis.domain,
        configuration_key: keyOf(configuration),
        outcome: null,
        ...seen,
      })
      .onConflict((conflict) => conflict.columns(['analysis_id', 'configuration_key']).doUpdateSet(seen))
      .execute()
  }

  /** The runs of an analysis in progress. */
  async list(id: AnalysisId): Promise<readonly Run[]> {
    const rows = await this.#database
      .selectFrom('config_runs')
      .select(['configuration', 'visit'])
      .where('analysis_id', '=', id)
      .where('visit', 'is not', null)
      .orderBy('id')
      .execute()
    return rows.map(({ configuration, visit }) => ({ configuration, visit: visit as Visit }))
  }

  /** Records the outcomes of runs. The text of their pages is deleted. */
  async judge(id: AnalysisId, judged: readonly { configuration: Configuration; outcome: RunOutcome }[]): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      for (const { configuration, outcome } of judged) {
        await database
          .updateTable('config_runs')
          .set({ outcome, visit: null })
          .where('analysis_id', '=', id)
          .where('configuration_key', '=', keyOf(configuration))
          .execute()
      }
    })
  }

  /** Deletes the runs that will not be judged any more. */
  async forgetUnjudged(id: AnalysisId): Promise<void> {
    await this.#database.deleteFrom('config_runs').where('analysis_id', '=', id).where('outcome', 'is', null).execute()
  }

  /** The known results within the scope. */
  async observed(scope: MatchScope, { normalized, host, domain }: Target): Promise<readonly Observed[]> {
    const column = { exact: 'target', host: 'host', domain: 'domain' } as const
    const value = { exact: normalized, host, domain }[scope]
    const count = (outcome: RunOutcome) => sql<number>`(count(*) filter (where outcome = ${outcome}))::int`
    return this.#database
      .selectFrom('config_runs')
      .select([
        sql<Configuration>`(array_agg(configuration))[1]`.as('configuration'),
        count('accessed').as('accessed'),
        count('blocked').as('blocked'),
        count('inconclusive').as('inconclusive'),
        sql<Date>`max(observed_at)`.as('lastObservedAt'),
        sql<Date | null>`max(observed_at) filter (where outcome = 'accessed')`.as('lastSupportedAt'),
        sql<RunOutcome[]>`coalesce((array_agg(outcome order by observed_at desc, id desc)
          filter (where outcome <> 'inconclusive'))[1:${sql.lit(judgedForWorking)}], '{}')`.as('latest'),
      ])
      .where(column[scope], '=', value)
      .where('outcome', 'is not', null)
      .groupBy('configuration_key')
      .execute()
  }
}
