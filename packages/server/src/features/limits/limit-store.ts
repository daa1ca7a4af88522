import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { unwaitedCommit } from '../../database/unwaited-commit.ts'

/** The limits that were set. Null means none. */
export interface SetLimits {
  readonly organization: number | null
  readonly projectDefault: number | null
}

export interface ProjectUse extends SetLimits {
  readonly project: number | null
  readonly usedByOrganization: number
  readonly usedByProject: number
}

interface Use {
  readonly used: number
  readonly vaults: number
  readonly authConnections: number
}

/** The requests of a minute. */
export interface RequestCount {
  readonly requests: number
  readonly windowStart: Date
}

export interface InvocationUse {
  readonly project: number | null
  readonly usedByOrganization: number
  readonly usedByProject: number
  readonly usedByApp: number
}

export class LimitStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async read(organizationId: OrganizationId): Promise<SetLimits & Use> {
    const { organization, projectDefault } = await this.#database
      .selectFrom('organizations')
      .select(columns)
      .where('id', '=', organizationId)
      .executeTakeFirstOrThrow()
    const { all } = await countLive(this.#database, organizationId)
    return {
      organization,
      projectDefault,
      used: all,
      vaults: await countIn(this.#database, 'vaults', organizationId),
      authConnections: await countIn(this.#database, 'auth_connections', organizationId),
    }
  }

  async setProjectDefault(organizationId: OrganizationId, limit: number | null): Promise<void> {
    await this.#database
      .updateTable('organizations')
      .set({ default_project_max_concurrent_sessions: limit })
      .where('id', '=', organizationId)
      .execute()
  }

  /**
   * Reads the usage of the project and its organization, and lets `take` use more, while other servers and requests
   * wait for the organization's row. `take` throws to leave usage unchanged. `readAgain` returns the usage after its
   * change.
   */
  async reserve<Taken>(
    projectId: ProjectId,
    take: (use: ProjectUse, database: Database, readAgain: () => Promise<ProjectUse>) => Promise<Taken>,
  ): Promise<Taken> {
    return this.#database.transaction().execute(async (database) => {
      const limits = await database
        .selectFrom('organizations')
        .innerJoin('projects', 'projects.organization_id', 'organizations.id')
        .select([
          'organizations.id as organizationId',
          'organizations.max_concurrent_sessions as organization',
          'organizations.default_project_max_concurrent_sessions as projectDefault',
          'projects.max_concurrent_sessions as project',
        ])
        .where('projects.id', '=', projectId)
        .forNoKeyUpdate('organizations')
        .executeTakeFirst()
      if (!limits) throw new BerthError('project_not_found')
      // A separate statement: one that waits for the row would still see the state before the wait.
      const readUse = async () => {
        const { all, own } = await countLive(database, limits.organizationId, projectId)
        return { ...limits, usedByOrganization: all, usedByProject: own }
      }
      return take(await readUse(), database, readUse)
    })
  }

  /** A condition for the statement that takes a slot: whether one is free. */
  takesSlot(projectId: ProjectId, organizationDefault: number): RawBuilder<boolean> {
    return sql<boolean>`take_session_place(${projectId}, ${organizationDefault}::int)`
  }

  /** Like `reserve`, for invocations. */
  async reserveInvocation<Taken>(
    projectId: ProjectId,
    appName: string,
    take: (use: InvocationUse, database: Database) => Promise<Taken>,
  ): Promise<Taken> {
    return this.#database.transaction().execute(async (database) => {
      const found = await database
        .selectFrom('organizations')
        .innerJoin('projects', 'projects.organization_id', 'organizations.id')
        .select(['organizations.id as organizationId', 'projects.max_concurrent_invocations as project'])
        .where('projects.id', '=', projectId)
        .forNoKeyUpdate('organizations')
        .executeTakeFirst()
      if (!found) throw new BerthError('project_not_found')
      const used = await database
        .selectFrom('invocations')
        .innerJoin('projects', 'projects.id', 'invocations.project_id')
        .select([
          sql<number>`count(*)::int`.as('usedByOrganization'),
          sql<number>`(count(*) filter (where projects.id = ${projectId}))::int`.as('usedByProject'),
          sql<number>`(count(*) filter (where projects.id = ${projectId} and app_name = ${appName}))::int`.as(
            'usedByApp',
          ),
        ])
        .where('projects.organization_id', '=', found.organizationId)
        .where('invocations.status', 'in', ['queued', 'running'])
        .executeTakeFirstOrThrow()
      return take({ ...used, project: found.project }, database)
    })
  }

  /** Like `reserve`, for connections of managed auth, where only the organization has a limit. */
  async reserveConnection<Taken>(
    projectId: ProjectId,
    take: (used: number, database: Database) => Promise<Taken>,
  ): Promise<Taken> {
    return this.#database.transaction().execute(async (database) => {
      const found = await database
        .selectFrom('organizations')
        .innerJoin('projects', 'projects.organization_id', 'organizations.id')
        .select('organizations.id as organizationId')
        .where('projects.id', '=', projectId)
        .forNoKeyUpdate('organizations')
        .executeTakeFirst()
      if (!found) throw new BerthError('project_not_found')
      return take(await countIn(database, 'auth_connections', found.organizationId), database)
    })
  }

  /**
   * Counts requests and returns the number of requests in their minute. A server whose clock is behind counts in the
   * newest minute. A crash of the database may lose counts, which is harmless.
   */
  async countRequest(
    organizationId: OrganizationId,
    operation: string,
    windowStart: Date,
    added = 1,
  ): Promise<RequestCount> {
    return this.#database
      .insertInto('request_counts')
      .values({ organization_id: organizationId, operation, window_start: windowStart, requests: added })
      .onConflict((conflict) =>
        conflict.columns(['organization_id', 'operation']).doUpdateSet({
          requests: sql`case when excluded.window_start > request_counts.window_start then excluded.requests else request_counts.requests + excluded.requests end`,
          window_start: sql`greatest(excluded.window_start, request_counts.window_start)`,
        }),
      )
      .returning(['requests', 'window_start as windowStart', unwaitedCommit])
      .executeTakeFirstOrThrow()
  }
}

const columns = [
  'max_concurrent_sessions as organization',
  'default_project_max_concurrent_sessions as projectDefault',
] as const

async function countLive(database: Database, organizationId: OrganizationId, projectId?: ProjectId) {
  const { rows } = await sql<{ all: number; own: number }>`
    select by_organization as all, by_project as own
    from used_session_places(${organizationId}, ${projectId ?? ''})`.execute(database)
  return rows[0] ?? { all: 0, own: 0 }
}

async function countIn(
  database: Database,
  table: 'vaults' | 'auth_connections',
  organizationId: OrganizationId,
): Promise<number> {
  const { count } = await database
    .selectFrom(table as 'vaults')
    .innerJoin('projects', 'projects.id', `${table as 'vaults'}.project_id`)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('projects.organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return count
}
