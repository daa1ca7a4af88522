import type { IncomingHttpHeaders } from 'node:http'
import type { Access, Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { EventStreamOptions } from '@berth/runtime/http/event-stream.ts'
import { type Call, type Handler, mount, mountStream } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { z } from 'zod'
import type { LimitService } from '../features/limits/limit-service.ts'
import type { Caller, OrganizationCaller } from './caller.ts'

type CallerHandler<
  KnownCaller,
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
> = (
  call: Call<Params, Query, Body> & { readonly caller: KnownCaller },
) => ReturnType<Handler<Params, Query, Body, Reply>>

type Mount<KnownCaller> = <
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(
  endpoint: Endpoint<Params, Query, Body, Reply>,
  handler: CallerHandler<KnownCaller, Params, Query, Body, Reply>,
) => void

/** Mounts endpoints that work in a project. Their handlers receive the caller with its project. */
export type MountForCallers = Mount<Caller>
/** Mounts endpoints of the organization, which need an API key but no project. */
export type MountForOrganizations = Mount<OrganizationCaller>

/** The same for streams of events. */
export type MountStreamForCallers = <Params extends z.ZodType, Query extends z.ZodType, Event extends z.ZodType>(
  endpoint: Endpoint<Params, Query, z.ZodUndefined, Event>,
  handler: (
    call: Call<Params, Query, z.ZodUndefined> & { readonly caller: Caller },
  ) => Promise<AsyncIterable<z.input<Event>>>,
) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read, so that the server reads no body of an unknown caller. */
    caller: OrganizationCaller | undefined
  }
}

interface Admission<KnownCaller extends OrganizationCaller> {
  readonly access: Access
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<KnownCaller>
  readonly limits: LimitService
}

export function mountWithCallers<KnownCaller extends OrganizationCaller>(
  app: FastifyInstance,
  { access, callerOf, limits }: Admission<KnownCaller>,
): Mount<KnownCaller> {
  return (endpoint, handler) => {
    if (endpoint.access !== access) throw new Error(`${endpoint.operationId} must be mounted for ${endpoint.access}`)
    mount(app, endpoint, (call) => handler({ ...call, caller: call.request.caller as KnownCaller }), {
      onRequest: async (request, reply) => {
        const caller = await callerOf(request.headers)
        request.caller = caller
        if (endpoint.isRateLimited) await requireAllowance(endpoint.operationId, caller, { reply, limits })
      },
    })
  }
}

export function mountStreamsWithCallers(
  app: FastifyInstance,
  callerOf: (headers: IncomingHttpHeaders) => Promise<Caller>,
  options: Pick<EventStreamOptions, 'nameOf'> = {},
): MountStreamForCallers {
  return (endpoint, handler) =>
    mountStream(app, endpoint, (call) => handler({ ...call, caller: call.request.caller as Caller }), {
      onRequest: async (request) => {
        request.caller = await callerOf(request.headers)
      },
      ...options,
    })
}

async function requireAllowance(
  operation: string,
  { organizationId }: OrganizationCaller,
  { reply, limits }: { readonly reply: FastifyReply; readonly limits: LimitService },
): Promise<void> {
  const allowance = await limits.countRequest(organizationId, operation)
  if (!allowance) return
  const { limit, remaining, retryAfterSeconds } = allowance
  reply.headers({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': remaining })
  if (retryAfterSeconds !== undefined) throw new BerthError('rate_limited', { limit }, { retryAfterSeconds })
}
