import { createBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Resolves with false when no other server has answered. */
type CreateElsewhere = (request: FastifyRequest, reply: FastifyReply) => Promise<boolean>

/**
 * Lets another server create the session when this host has no room for it. The row of the failed create has been
 * removed by then, so the session is counted once. Has to come before the routes are mounted.
 */
export function forwardFullCreates(app: FastifyInstance, createElsewhere: CreateElsewhere): void {
  app.addHook('onRoute', (route) => {
    if (route.method !== createBrowser.method || route.url !== createBrowser.path) return
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
