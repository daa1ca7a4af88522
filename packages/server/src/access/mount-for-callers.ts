import type { Endpoint } from '@berth/contract/endpoint.ts'
import { type Call, type Handler, mount } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Caller } from './caller.ts'

type CallerOf = (headers: Call<z.ZodType, z.ZodType, z.ZodType>['request']['headers']) => Promise<Caller>

type CallerHandler<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
> = (call: Call<Params, Query, Body> & { readonly caller: Caller }) => ReturnType<Handler<Params, Query, Body, Reply>>

/** Mounts endpoints that need an API key; their handlers also learn who calls. */
export type MountForCallers = <
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(
  endpoint: Endpoint<Params, Query, Body, Reply>,
  handler: CallerHandler<Params, Query, Body, Reply>,
) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body is read: an unknown caller makes the server read nothing. */
    caller: Caller | undefined
  }
}

export function mountForCallers(app: FastifyInstance, callerOf: CallerOf): MountForCallers {
  return (endpoint, handler) =>
    mount(app, endpoint, (call) => handler({ ...call, caller: call.request.caller as Caller }), {
      onRequest: async (request) => {
        request.caller = await callerOf(request.headers)
      },
    })
}
