import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { quickPace } from '../testing/quick-pace.ts'
import { TestDatabase } from '../testing/test-database.ts'
import { unfinishedJob } from '../testing/unfinished-job-runner.ts'
import type { Job } from './job.ts'
import { JobRunner } from './job-runner.ts'

const { database, connectionString, ...testDatabase } = await openDatabase()
const open: JobRunner[] = []
after(async () => {
  await Promise.all(open.map((runner) => runner.close()))
  await testDatabase.close()
})

async function openDatabase() {
  const opened = await TestDatabase.open()
  return { database: opened.database, connectionString: opened.connectionString, close: () => opened.close() }
}

function openRunner(serverId: string): JobRunner {
  const runner = new JobRunner({
    connectionString,
    serverId,
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
    pace: quickPace,
  })
  open.push(runner)
  return runner
}

interface Numbered {
  readonly number: number
}

function numberedJob(name: string, more: Partial<Job<Numbered>> = {}): Job<Numbered> {
  return { name, runsOn: 'any server', keyOf: ({ number }) => `${number}`, limitSeconds: 60, ...more }
}

/** Returns a handler and a promise that resolves with its arguments after this many calls. */
function calls(count: number) {
  const { promise, resolve } = Promise.withResolvers<readonly number[]>()
  const numbers: number[] = []
  const note = (number: number) => {
    numbers.push(number)
    if (numbers.length === count) resolve(numbers)
  }
  return { note, done: promise, numbers }
}

test('each job is run once, by one of the servers', async () => {
  const job = numberedJob('shared')
  const runners = [openRunner('a'), openRunner('b')]
  const { note, done, numbers } = calls(20)
  for (const runner of runners) await runner.work(job, async ({ number }) => note(number))

  await Promise.all(Array.from({ length: 20 }, (_value, number) => runners[number % 2]?.enqueue(job, { number })))
  await done
  await Promise.all(runners.map((runner) => runner.close()))

  assert.deepEqual(
    numbers.toSorted((one, other) => one - other),
    [...Array(20).keys()],
  )
})

test('a run that fails is repeated', async () => {
  const job = numberedJob('failing')
  const runner = openRunner('a')
  const { note, done } = calls(3)
  await runner.work(job, async ({ number }) => {
    note(number)
    if ((await Promise.race([done, undefined])) === undefined) throw new Error('not yet')
  })

  await runner.enqueue(job, { number: 1 })

  assert.deepEqual(await done, [1, 1, 1])
})

test('a job exists if and only if its transaction commits', async () => {
  const job = numberedJob('transactional')
  const runner = openRunner('a')
  const { note, done, numbers } = calls(1)
  await runner.work(job, async ({ number }) => note(number))

  const refused = database.transaction().execute(async (transaction) => {
    await runner.enqueue(job, { number: 1 }, { transaction })
    throw new Error('rolled back')
  })
  await assert.rejects(refused, /rolled back/)
  await database.transaction().execute(async (transaction) => {
    await runner.enqueue(job, { number: 2 }, { transaction })
    assert.deepEqual(numbers, [])
  })

  assert.deepEqual(await done, [2])
})

test('a job of one server runs on that server, even if it starts later', async () => {
  const job = numberedJob('placed', { runsOn: 'one server' })
  const [here, there] = [openRunner('here'), openRunner('there')]
  const atHere = calls(1)
  const atThere = calls(2)
  await here.work(job, async ({ number }) => atHere.note(number))

  await here.enqueue(job, { number: 1 }, { server: 'there' })
  await here.enqueue(job, { number: 2 }, { server: 'there' })
  await there.enqueue(job, { number: 3 }, { server: 'here' })
  assert.deepEqual(await atHere.done, [3])
  await there.work(job, async ({ number }) => atThere.note(number))

  assert.deepEqual((await atThere.done).toSorted(), [1, 2])
  await assert.rejects(here.enqueue(job, { number: 4 }), /needs a server/)
})

test('of the jobs with one key one runs and one waits, and a job that is enqueued during a run follows it', async () => {
  const job = numberedJob('keyed')
  const runners = [openRunner('a'), openRunner('b')]
  const goOn = Promise.withResolvers<void>()
  const began = calls(2)
  const ended = calls(2)
  let atOnce = 0
  for (const runner of runners) {
    await runner.work(job, async ({ number }) => {
      atOnce += 1
      assert.equal(atOnce, 1)
      began.note(number)
      await goOn.promise
      atOnce -= 1
      ended.note(number)
    })
  }

  await runners[0]?.enqueue(job, { number: 7 })
  while (began.numbers.length === 0) await delay(5)
  for (const runner of [...runners, ...runners]) await runner.enqueue(job, { number: 7 })
  goOn.resolve()
  await ended.done
  await Promise.all(runners.map((runner) => runner.close()))

  const { rows } = await sql`select from jobs.job where name = 'keyed' and state <> 'completed'`.execute(database)
  assert.deepEqual([began.numbers, ended.numbers, rows.length], [[7, 7], [7, 7], 0])
})

test('a server that stops aborts its jobs, and another server runs them', async () => {
  const job = numberedJob('handed-over')
  const [first, second] = [openRunner('a'), openRunner('b')]
  const begun = calls(1)
  await first.work(job, async ({ number }, signal) => {
    begun.note(number)
    await once(signal, 'abort')
    throw signal.reason
  })
  await first.enqueue(job, { number: 1 })
  await begun.done

  await first.close()
  const again = calls(1)
  await second.work(job, async ({ number }) => again.note(number))

  assert.deepEqual(await again.done, [1])
})

test('a job with a schedule is enqueued once for all servers', async () => {
  const job = numberedJob('scheduled', { cron: '7 * * * *', keyOf: () => '' })
  for (const server of ['a', 'b']) await openRunner(server).work(job, async () => {})

  const { rows } =
    await sql`select cron, options ->> 'missed' as missed from jobs.schedule where name = 'scheduled'`.execute(database)

  assert.deepEqual(rows, [{ cron: '7 * * * *', missed: 'once' }])
})

test('the jobs of a killed server run again after their first run has ended, and none is lost', async () => {
  const survivor = openRunner('survivor')
  for (let number = 0; number < 3; number++) await survivor.enqueue(unfinishedJob, { number })
  const program = fileURLToPath(new URL('../testing/unfinished-job-runner.ts', import.meta.url))
  const victim = spawn(process.execPath, [program, connectionString], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [claimed] = await once(victim.stdout, 'data')
  const ended = calls(3)
  let isVictimDead = false
  await survivor.work(unfinishedJob, async ({ number }) => {
    if (number === Number(claimed)) assert.ok(isVictimDead, 'it is run by two at once')
    ended.note(number)
  })
  while (ended.numbers.length < 2) await delay(20)
  // The runner is alive, so it keeps the jobs that it has claimed.
  if (process.env.BERTH_DEEP) await delay((quickPace.heartbeatSeconds + 5) * 1_000)
  assert.equal(ended.numbers.length, 2)

  victim.kill('SIGKILL')
  await once(victim, 'exit')
  isVictimDead = true

  assert.deepEqual((await ended.done).toSorted(), [0, 1, 2])
  assert.equal(ended.numbers[2], Number(claimed))
})
