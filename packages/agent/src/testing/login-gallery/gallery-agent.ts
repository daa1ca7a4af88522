import assert from 'node:assert/strict'
import { loginRoutes } from '@berth/contract/agent/login/login-routes.ts'
import { startFakeEgress } from '../fake-egress.ts'
import { type StartedAgent, startAgent } from '../start-agent.ts'
import { Gallery } from './gallery.ts'

/** An agent whose browser reaches the sites of a gallery. */
export class GalleryAgent {
  readonly agent: StartedAgent
  readonly gallery: Gallery
  readonly #egress: AsyncDisposable

  private constructor(agent: StartedAgent, gallery: Gallery, egress: AsyncDisposable) {
    this.agent = agent
    this.gallery = gallery
    this.#egress = egress
  }

  static async start(): Promise<GalleryAgent> {
    const agent = await startAgent()
    await agent.becomesReady()
    const gallery = new Gallery()
    const egress = await startFakeEgress(agent, (request, response) => {
      gallery.answer(request, response).catch((error: Error) => response.destroy(error))
    })
    return new GalleryAgent(agent, gallery, egress)
  }

  async ask<Answer>(name: keyof typeof loginRoutes, body: object): Promise<Answer> {
    const { method, path } = loginRoutes[name]
    const answer = await this.agent.call(method, path, body)
    assert.equal(answer.status, 200, `${name}: ${answer.body}`)
    return JSON.parse(answer.body)
  }

  /** Replaces all cookies, of all sites. */
  async setCookies(cookies: readonly object[] = []): Promise<void> {
    const cdp = await this.agent.connect()
    await cdp.send('Storage.clearCookies')
    if (cookies.length > 0) await cdp.send('Storage.setCookies', { cookies })
    cdp.terminate()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#egress[Symbol.asyncDispose]()
    await this.agent[Symbol.asyncDispose]()
  }
}
