import { createInvocation } from '@berth/contract/apps/app-endpoints.ts'
import { createBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Resolves with false if no other server has responded. */
type CreateElsewhere = (request: FastifyRequest, reply: FastifyReply) => Promise<boolean>

const creates = [createBrowser, createInvocation]

/**
 * Lets another server create the session, or run the invocation that its caller waits for, when this host has no
 * capacity. The row of the failed create is removed before, so it is counted once. Must be called before the routes are
 * mounted.
 */
export function forwardFullCreates(app: FastifyInstance, createElsewhere: CreateElsewhere): void {
  app.addHook('onRoute', (route) => {
    if (!creates.some(({ method, path }) => route.method === method && route.url === path)) return
    const { handler } = route
    route.handler = async function (request, reply) {
      try {
        return await handler.call(this, request, reply)
      } catch (error) {
        const isFull = error instanceof BerthError && error.code === 'capacity_exhausted'
        if (!isFull || !(await createElsewhere(request, reply))) throw error
        return undefined
      }
    }
  })
}
