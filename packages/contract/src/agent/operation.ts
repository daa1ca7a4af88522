import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import type { Endpoint } from '../endpoint.ts'

/** What telemetry counts a call as: it drives the browser, or it manages the machine. */
export type OperationCategory = 'control' | 'platform'

/**
 * Something that only the agent can do. It is declared once and reached in two ways with the same answers: below
 * `/browsers/{id_or_name}` with a key, and below the session's `base_url` with its token.
 */
export interface Operation<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> extends Endpoint<z.ZodType, Query, Body, Reply> {
  /** The path below either root: `/computer/click_mouse`. */
  readonly agentPath: `/${string}`
  /** Parameters of that path. */
  readonly agentParams?: Params
  readonly category: OperationCategory
  /**
   * A request to somebody else that passes through the session: reached below `base_url` alone, with headers, status and
   * body of that other server's own, so that the API document has nothing to say of it.
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

/** Declares an operation; `path` and `params` are those below either root. */
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
