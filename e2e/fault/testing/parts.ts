import assert from 'node:assert/strict'
import type { ProcessInfo } from '../../testing/processes.ts'
import type { HostView } from './holdings.ts'
import { until } from './until.ts'

export type SessionPart = 'agent' | 'chromium' | 'display'

const commands: Readonly<Record<SessionPart, RegExp>> = {
  agent: /^\/opt\/berth\/node /,
  chromium: /^\/usr\/lib\/chromium\/chromium --remote-debugging/,
  display: /^Xtigervnc /,
}

async function lookForPart(view: HostView, sessionId: string, part: SessionPart): Promise<ProcessInfo | undefined> {
  return (await view.processesOf(sessionId)).find(({ command }) => commands[part].test(command))
}

export async function hasPart(view: HostView, sessionId: string, part: SessionPart): Promise<boolean> {
  return (await lookForPart(view, sessionId, part)) !== undefined
}

export async function findPart(view: HostView, sessionId: string, part: SessionPart): Promise<ProcessInfo> {
  const found = await lookForPart(view, sessionId, part)
  assert.ok(found, `the session has a process that is its ${part}`)
  return found
}

export async function killPart(view: HostView, sessionId: string, part: SessionPart): Promise<void> {
  process.kill((await findPart(view, sessionId, part)).pid, 'SIGKILL')
}

export async function killEgress(view: HostView): Promise<void> {
  const { egress } = await view.processes()
  assert.equal(egress.length, 1, 'one egress runs')
  for (const { pid } of egress) process.kill(pid, 'SIGKILL')
}

/**
 * Kills the parent process of the database. Resolves when its children have noticed and exited, because they answer
 * until then.
 */
export async function killPostgres(view: HostView): Promise<void> {
  const all = (await view.processes()).postgres
  const first = all.find(({ command }) => command.includes('/postgres -D'))
  assert.ok(first, 'PostgreSQL runs')
  process.kill(first.pid, 'SIGKILL')
  const old = new Set(all.map(({ pid }) => pid))
  const isAnyLeft = async () =>
    (await view.processes()).postgres.some(({ pid, state }) => old.has(pid) && state !== 'Z')
  await until('the end of every process of the database', async () => !(await isAnyLeft()), {
    limitSeconds: 60,
    everyMilliseconds: 20,
  })
}
