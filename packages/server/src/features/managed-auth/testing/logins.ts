import assert from 'node:assert/strict'
import type { LoginResponse, ManagedAuth } from '@berth/contract/managed-auth/connection.ts'
import { FakeLogin, type FakeLoginSite } from '../../../testing/fakes/fake-login.ts'
import type { TestProject, TestServer } from '../../../testing/server-test.ts'

export const password = 'planted-p@ss'

/** User name and password on one page, then a code by SMS. */
export const withCode: FakeLoginSite = {
  first: 'login',
  pages: {
    login: {
      state: 'form',
      fields: [
        { name: 'email', purpose: 'email' },
        { name: 'password', purpose: 'password' },
      ],
      choices: [{ kind: 'sso', label: 'Continue with Acme', provider: 'acme' }],
      submit: (values) => (values.password === password ? 'code' : 'refused'),
      choose: () => 'home',
    },
    refused: {
      state: 'form',
      fields: [
        { name: 'email', purpose: 'email' },
        { name: 'password', purpose: 'password', is_rejected: true },
      ],
      about: { problem: 'credentials_invalid', website_error: 'Wrong password' },
      submit: (values) => (values.password === password ? 'code' : 'refused'),
    },
    code: {
      state: 'form',
      fields: [{ name: 'code', purpose: 'sms_code' }],
      submit: ({ code }) => (code === '123456' ? 'home' : 'code'),
    },
    home: { state: 'logged_in' },
  },
  check: () => 'yes',
}

export interface Failure {
  readonly code: string
  readonly message: string
  readonly existing_id?: string
}

const base = { domain: 'site.test', profile_name: 'ann' }

export async function connect(project: TestProject, more: object = {}): Promise<ManagedAuth> {
  const { status, body } = await project.call<ManagedAuth>('POST', '/auth/connections', { ...base, ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

export const login = async (project: TestProject, id: string, body?: object) =>
  (await project.call<LoginResponse>('POST', `/auth/connections/${id}/login`, body)).body
export const read = async (project: TestProject, id: string) =>
  (await project.call<ManagedAuth>('GET', `/auth/connections/${id}`)).body
export const submit = (project: TestProject, id: string, body: object) =>
  project.call<{ accepted: boolean } & Failure>('POST', `/auth/connections/${id}/submit`, body)

export async function until(
  project: TestProject,
  id: string,
  isSo: (state: ManagedAuth) => boolean,
): Promise<ManagedAuth> {
  for (let look = 0; look < 3_000; look += 1) {
    const state = await read(project, id)
    if (isSo(state)) return state
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`never so: ${JSON.stringify(await read(project, id))}`)
}

/** Hosts the site for one test, and records the browsers that visit it. */
export function host(server: TestServer, site: FakeLoginSite): FakeLogin[] {
  const made: FakeLogin[] = []
  server.host.login = () => {
    const browser = new FakeLogin(site)
    made.push(browser)
    return browser
  }
  return made
}

/** A login with only a user name and a password. */
export const simple: FakeLoginSite = {
  first: 'login',
  pages: {
    login: {
      state: 'form',
      fields: [
        { name: 'username', purpose: 'username' },
        { name: 'password', purpose: 'password' },
      ],
      submit: (values) => (values.password === password ? 'home' : 'refused'),
    },
    refused: {
      state: 'form',
      fields: [
        { name: 'username', purpose: 'username' },
        { name: 'password', purpose: 'password', is_rejected: true },
      ],
      about: { problem: 'credentials_invalid', website_error: 'Wrong password' },
      submit: (values) => (values.password === password ? 'home' : 'refused'),
    },
    home: { state: 'logged_in' },
  },
  check: () => 'no',
}

export const isAsking = ({ flow_step }: ManagedAuth) => flow_step === 'AWAITING_INPUT'
export const isOver = ({ flow_step }: ManagedAuth) => flow_step === 'COMPLETED'

/** A credential of the project that the simple site accepts. */
export async function credential(
  project: TestProject,
  values: object = { username: 'ann', password },
): Promise<string> {
  const body = { name: 'stored', domain: 'site.test', values }
  const { status, body: made } = await project.call<{ name: string }>('POST', '/credentials', body)
  assert.equal(status, 201)
  return made.name
}

/** A connection that has logged in with a stored credential. */
export async function loggedIn(server: TestServer, project: TestProject, more: object = {}): Promise<ManagedAuth> {
  host(server, simple)
  const connection = await connect(project, { credential: { name: await credential(project) }, ...more })
  await login(project, connection.id)
  const done = await until(project, connection.id, isOver)
  assert.equal(done.flow_status, 'SUCCESS', JSON.stringify(done))
  return done
}
