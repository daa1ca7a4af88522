import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

/** A small random number generator with a seed, so that a failure can be repeated. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Callers of one pool that act randomly, and record their leases. */
class Callers {
  readonly #owner: TestProject
  readonly #path: string
  readonly #id: PoolId
  readonly #random: (below: number) => number
  /** Browsers that are leased and not being returned. */
  readonly #held = new Map<string, Browser>()
  size: number

  constructor(owner: TestProject, { id, browser_pool_config }: BrowserPool, random: (below: number) => number) {
    this.#owner = owner
    this.#path = `/browser_pools/${id}`
    this.#id = id as PoolId
    this.#random = random
    this.size = browser_pool_config.size
  }

  readonly #actions: readonly (() => Promise<void>)[] = [
    () => this.#acquire(),
    () => this.#acquire(),
    () => this.#acquire(),
    () => this.#release(true),
    () => this.#release(true),
    () => this.#release(false),
    () => this.#delete(),
    () => this.#kill(),
    () => this.fill(),
    () => this.fill(),
    async () => void (await this.#owner.call('POST', `${this.#path}/flush`)),
    () => this.#leave(),
  ]

  async act(): Promise<void> {
    await this.#actions[this.#random(this.#actions.length)]?.()
  }

  async resize(): Promise<void> {
    this.size = 1 + this.#random(4)
    const { status } = await this.#owner.call('PATCH', this.#path, { size: this.size })
    assert.equal(status, 200)
  }

  async fill(): Promise<void> {
    server.clock.advance(60)
    await server.services.poolFiller.fill(this.#id, new AbortController().signal)
  }

  async counts() {
    const { body } = await this.#owner.call<BrowserPool>('GET', this.#path)
    return { available: body.available_count, acquired: body.acquired_count }
  }

  get leases(): number {
    return this.#held.size
  }

  async #acquire(): Promise<void> {
    const asked = { acquire_timeout_seconds: 0 }
    const { status, body } = await this.#owner.call<Browser>('POST', `${this.#path}/acquire`, asked)
    if (status === 204) return
    assert.equal(status, 200)
    assert.ok(!this.#held.has(body.session_id), 'a browser is leased to one caller')
    this.#held.set(body.session_id, body)
  }

  /** A caller that disconnects immediately gets no browser. Calls the service, which reports when it has noticed. */
  async #leave(): Promise<void> {
    const signal = AbortSignal.timeout(1 + this.#random(10))
    const asked = { projectId: this.#owner.id, idOrName: this.#id, request: {}, signal }
    const session = await server.services.leases.acquire(asked)
    // A browser that was leased before the signal is returned after it.
    if (session && !signal.aborted) await once(signal, 'abort')
  }

  async #release(reuse: boolean): Promise<void> {
    const browser = this.#take()
    if (!browser) return
    const asked = { session_id: browser.session_id, reuse }
    const { status } = await this.#owner.call('POST', `${this.#path}/release`, asked)
    assert.equal(status, 204)
  }

  async #delete(): Promise<void> {
    const browser = this.#take()
    if (browser) assert.equal((await this.#owner.call('DELETE', `/browsers/${browser.session_id}`)).status, 204)
  }

  /** Kills the machine of a leased browser, or of a ready one. */
  async #kill(): Promise<void> {
    const browser = this.#take()
    const rows = await server.database
      .selectFrom('sessions')
      .select('id')
      .where('pool_id', '=', this.#id)
      .where('state', '=', browser ? 'active' : 'idle')
      .execute()
    const id = (browser?.session_id ?? rows[this.#random(rows.length)]?.id) as SessionId | undefined
    // A ready one may be leased meanwhile to a caller that then loses it. The tests of crashes cover that.
    if (!browser || !id || !server.host.has(id)) return
    server.host.agentOf(id).kill()
    await until(async () => ['ending', 'deleted'].includes((await server.row(id)).state))
  }

  #take(): Browser | undefined {
    const [id, browser] = [...this.#held][this.#random(this.#held.size)] ?? []
    if (id !== undefined) this.#held.delete(id)
    return browser
  }
}

const seeds = process.env.BERTH_DEEP === '1' ? [1, 2, 3, 4, 5, 6] : [1]
for (const seed of seeds) {
  test(`counts are correct while callers act randomly, and the pool is full in the end (${seed})`, async () => {
    const owner = await server.project()
    const body = { size: 3, headless: true, fill_rate_per_minute: 1000 }
    const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', body)
    const random = randomNumbers(seed)
    const callers = new Callers(owner, pool, random)
    await callers.fill()

    for (let round = 0; round < 15; round += 1) {
      const isCrash = round % 5 === 4
      const largest = Math.max(callers.size, callers.leases)
      const looking = new AbortController()
      const seen = look(callers, looking.signal)
      await Promise.all(Array.from({ length: 6 }, () => callers.act()))
      looking.abort()
      for (const { available, acquired } of await seen)
        assert.ok(available + acquired <= largest, `${available} + ${acquired} of ${largest}`)
      await until(async () => (await callers.counts()).acquired === callers.leases)
      if (round % 3 === 2) await callers.resize()
      if (isCrash) {
        await server.crash()
        await server.start()
      }
      assert.equal((await callers.counts()).acquired, callers.leases, 'nothing is lost, and nothing is given twice')
    }

    await callers.fill()
    await server.reap()
    const { available, acquired } = await callers.counts()
    assert.deepEqual(
      { available, acquired },
      { available: Math.max(0, callers.size - callers.leases), acquired: callers.leases },
    )
    await owner.call('DELETE', `/browser_pools/${pool.id}`, { force: true })
    await server.reap()
    await until(async () => server.host.machines.size === 0)
  })
}

/** What clients see in the meantime. */
async function look(callers: Callers, signal: AbortSignal) {
  const seen: Awaited<ReturnType<Callers['counts']>>[] = []
  while (!signal.aborted) {
    seen.push(await callers.counts())
    await delay(2)
  }
  return seen
}

const crashes: Readonly<Record<string, (id: SessionId) => Promise<unknown>>> = {
  'before a released browser was taken from its caller': (id) => setState(id, { state: 'returning', leased_at: null }),
  'before a browser was ended': (id) => setState(id, { state: 'ending', deleted_at: server.clock.now() }),
  'with the machine of a leased browser': async (id) => server.host.agentOf(id).kill(),
  'and nothing else': async () => {},
}
for (const [what, happen] of Object.entries(crashes)) {
  test(`a server that was killed ${what} fills the pool again`, async () => {
    const owner = await server.project()
    const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', { size: 2, headless: true })
    const fill = () => server.services.poolFiller.fill(pool.id as PoolId, new AbortController().signal)
    await fill()
    const { body: browser } = await owner.call<Browser>('POST', `/browser_pools/${pool.id}/acquire`, {})
    const id = browser.session_id as SessionId

    await server.crash()
    await happen(id)
    await server.start()
    await server.reap()
    await fill()

    const { body } = await owner.call<BrowserPool>('GET', `/browser_pools/${pool.id}`)
    const isLeased = (await server.row(id)).state === 'active'
    assert.deepEqual([body.available_count, body.acquired_count], isLeased ? [1, 1] : [2, 0])
    assert.equal((await owner.call('DELETE', `/browser_pools/${pool.id}`, { force: true })).status, 204)
    await server.reap()
  })
}

function setState(id: SessionId, columns: object): Promise<unknown> {
  return server.database.updateTable('sessions').set(columns).where('id', '=', id).execute()
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, 'it did not happen within 30 s')
    await delay(5)
  }
}
