import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { z } from 'zod'
import type { CommandOptions } from '../../../agent-link/command-agent.ts'
import type { LinkedVault } from '../vault.ts'

/** The operations on sessions that fills need. */
export interface LinkedSessions {
  /** The active session of the project with this id or name, and its linked vaults. */
  find(
    projectId: ProjectId,
    idOrName: string,
  ): Promise<{ readonly id: SessionId; readonly vaults: readonly LinkedVault[] | null } | undefined>
  /** Sends a command to the agent of the session. */
  command<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options: CommandOptions,
  ): Promise<z.output<Reply>>
}
