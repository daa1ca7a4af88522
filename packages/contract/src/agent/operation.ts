import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import type { Endpoint } from '../endpoint.ts'

/** The telemetry category of a call: it controls the browser, or it manages the machine. */
export type OperationCategory = 'control' | 'platform'

/**
 * A request that only the agent can serve. It is declared once and available at two addresses: below
 * `/browsers/{id_or_name}` with an API key, and below the session's `base_url` with its token.
 */
export interface Operation<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> extends Endpoint<z.ZodType, Query, Body, Reply> {
  /** The path below both roots, such as `/computer/click_mouse`. */
  readonly agentPath: `/${string}`
  /** Parameters of that path. */
  readonly agentParams?: Params
  readonly category: OperationCategory
  /**
   * Set for a request to another server that passes through the session. It is available only below `base_url`, and its
   * status, headers and body are those of the other server, so the API document omits it.
   */
  readonly isPassThrough?: true
}

type OperationDeclaration<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
> = Omit<Operation<Params, Query, Body, Reply>, 'path' | 'params' | 'access' | 'agentPath' | 'agentParams'> & {
  readonly path: `/${string}`
  readonly params?: Params
}

/** Declares an operation. `path` and `params` are relative to both roots. */
export function defineOperation<
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Reply extends z.ZodType = z.ZodUndefined,
>({
  path,
  params,
  ...declaration
}: OperationDeclaration<Params, Query, Body, Reply>): Operation<Params, Query, Body, Reply> {
  const shape = params instanceof z.ZodObject ? params.shape : {}
  return {
    ...declaration,
    access: 'project',
    path: `/browsers/{id_or_name}${path}`,
    params: z.object({ id_or_name: IdOrName, ...shape }),
    errors: ['session_not_found', 'session_unreachable', 'operation_interrupted', ...declaration.errors],
    agentPath: path,
    ...(params && { agentParams: params }),
  }
}
