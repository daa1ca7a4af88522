import type { z } from 'zod'
import type { Endpoint } from '../endpoint.ts'

/** Declares the same operation at its older path, without the prefix `/org`. */
export function legacyAlias<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(endpoint: Endpoint<Params, Query, Body, Reply>): Endpoint<Params, Query, Body, Reply> {
  return {
    ...endpoint,
    operationId: `${endpoint.operationId}Legacy`,
    path: endpoint.path.replace(/^\/org/, '') as `/${string}`,
    description: `Use ${endpoint.path}.`,
    deprecated: true,
  }
}
