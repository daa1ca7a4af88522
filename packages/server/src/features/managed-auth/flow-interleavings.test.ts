import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AuthFlowId } from '@berth/contract/common/ids.ts'
import type { FlowStatus } from '@berth/contract/managed-auth/connection.ts'
import fc from 'fast-check'
import { FakeLogin, type FakeLoginSite } from '../../testing/fakes/fake-login.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { connect, credential, login, password, read, simple, submit } from './testing/logins.ts'

const server = await TestServer.open()
after(() => server.close())

/** A login in two steps. Only a person can do the second one. */
const site: FakeLoginSite = {
  first: 'login',
  pages: {
    ...simple.pages,
    login: {
      ...simple.pages.login,
      state: 'form',
      submit: (values) => (values.password === password ? 'code' : 'refused'),
    },
    code: {
      state: 'form',
      fields: [{ name: 'code', purpose: 'sms_code' }],
      submit: ({ code = '' }) => (code.startsWith('right') ? 'home' : 'code'),
    },
  },
}

type Action = 'login' | 'answer' | 'wrong' | 'twice' | 'stale' | 'late' | 'crash' | 'delete' | 'read' | 'by hand'

/** One random sequence of events for one connection. */
class Run {
  readonly #project: TestProject
  readonly #browsers: FakeLogin[] = []
  readonly #ends = new Map<AuthFlowId, FlowStatus>()
  readonly #taken: string[] = []
  #serial = 0
  #id: string

  private constructor(project: TestProject, id: string) {
    this.#project = project
    this.#id = id
  }

  static async begin(): Promise<Run> {
    const project = await server.project()
    const name = await credential(project)
    const run = new Run(project, (await connect(project, { credential: { name } })).id)
    server.host.login = () => {
      const browser = new FakeLogin(site)
      run.#browsers.push(browser)
      return browser
    }
    return run
  }

  async do(action: Action): Promise<void> {
    switch (action) {
      case 'login':
        await login(this.#project, this.#id)
        return
      case 'answer':
      case 'wrong':
        return this.#answer([action])
      case 'twice':
        return this.#answer(['answer', 'answer', 'wrong'])
      case 'stale': {
        const { status } = await submit(this.#project, this.#id, { interaction_id: 'old', field_values: { f0: 'old' } })
        assert.ok(status === 400 || status === 422)
        return
      }
      case 'late':
        server.clock.advance(11 * 60)
        return
      case 'crash':
        await server.crash()
        await server.start()
        return
      case 'delete': {
        await this.#project.call('DELETE', `/auth/connections/${this.#id}`)
        this.#id = (await connect(this.#project, { credential: { name: 'stored' } })).id
        return
      }
      case 'read':
        await read(this.#project, this.#id)
        return
      case 'by hand':
        this.#browsers.at(-1)?.goTo('home')
    }
  }

  /** Answers the current questions concurrently. At most one answer is accepted. */
  async #answer(kinds: readonly ('answer' | 'wrong')[]): Promise<void> {
    const { interaction_id: question, fields } = await read(this.#project, this.#id)
    if (!question || !fields) return
    const answers = await Promise.all(
      kinds.map(async (kind) => {
        this.#serial += 1
        const value = `${kind === 'answer' ? 'right' : 'wrong'} ${this.#serial}`
        const values = Object.fromEntries(fields.map(({ id }) => [id, value]))
        const { status } = await submit(this.#project, this.#id, { interaction_id: question, field_values: values })
        return { status, value }
      }),
    )
    const taken = answers.filter(({ status }) => status === 202)
    assert.ok(taken.length <= 1, 'one answer is taken')
    assert.ok(answers.every(({ status }) => [202, 400, 422].includes(status)))
    this.#taken.push(...taken.map(({ value }) => value))
  }

  async check(): Promise<void> {
    const flows = await server.database
      .selectFrom('auth_flows')
      .innerJoin('auth_connections', 'auth_connections.id', 'connection_id')
      .select(['auth_flows.id', 'auth_flows.status', 'auth_flows.step', 'sealed_inputs', 'sealed_answer'])
      .where('project_id', '=', this.#project.id)
      .execute()
    assert.ok(flows.filter(({ status }) => status === 'IN_PROGRESS').length <= 1, 'one flow at a time')
    for (const { id, status, step, sealed_inputs, sealed_answer } of flows) {
      const before = this.#ends.get(id)
      assert.ok(before === undefined || before === status, `a flow that was ${before} is ${status}`)
      if (status === 'IN_PROGRESS') continue
      this.#ends.set(id, status)
      assert.deepEqual([step, sealed_inputs, sealed_answer], ['COMPLETED', null, null])
    }
    for (const { typed } of this.#browsers) {
      const stored = typed.filter(({ value }) => value === password)
      assert.ok(stored.length <= 1, 'a stored password is typed once')
    }
    const entered = this.#browsers.flatMap(({ typed }) => typed).map(({ value }) => value)
    for (const value of entered.filter((text) => /^(right|wrong) /.test(text))) {
      assert.ok(this.#taken.includes(value), 'only what was taken is typed')
      assert.equal(entered.filter((text) => text === value).length, 1, 'and once')
    }
  }

  /** Checks that nothing is left. */
  async end(): Promise<void> {
    await this.#project.call('DELETE', `/auth/connections/${this.#id}`)
    const left = () =>
      server.database
        .selectFrom('sessions')
        .select('id')
        .where('project_id', '=', this.#project.id)
        .where('state', '!=', 'deleted')
        .execute()
    for (let look = 0; look < 3_000 && (await left()).length > 0; look += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.deepEqual(await left(), [], 'no browser is left')
  }
}

test('with events in any order, flows run one at a time, end once, and type nothing twice', async () => {
  const actions: readonly Action[] = [
    'login',
    'answer',
    'wrong',
    'twice',
    'stale',
    'late',
    'crash',
    'delete',
    'read',
    'by hand',
  ]
  const step = fc.record({ action: fc.constantFrom(...actions), pause: fc.constantFrom(0, 0, 10, 60) })

  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async (steps) => {
      const run = await Run.begin()
      await run.do('login')
      for (const { action, pause } of steps) {
        await run.do(action)
        if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause))
        await run.check()
      }
      await run.end()
      await run.check()
    }),
    { numRuns: 12, endOnFailure: true },
  )
})
