import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { ask } from '../../testing/ask.ts'
import { LocalGround, runIn } from '../../testing/local-ground.ts'
import { machineSpec } from '../../testing/machine-spec.ts'
import { machineFolders } from './machine-folders.ts'

const never = new AbortController().signal

async function openGround(context: TestContext): Promise<LocalGround> {
  const ground = await LocalGround.open()
  context.after(() => ground.close())
  return ground
}

test('explains a start that fails by the last lines that the machine wrote', async (context) => {
  const ground = await openGround(context)
  const agent = join(ground.folders.data, 'broken-agent.ts')
  await writeFile(agent, "console.error('the display is missing'); process.exit(3)")
  const driver = await ground.openDriver({ programs: { entries: { agent }, packages: [] } })

  const start = driver.start(machineSpec(), never)

  await assert.rejects(start, /its agent did not answer\nthe display is missing/)
  assert.deepEqual(await ground.remains(), [])
})

test('explains a sandbox that cannot be built', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  // A machine's view needs this file of all machines.
  const agent = join(ground.folders.data, 'agent')
  await chmod(agent, 0)
  await writeFile(join(ground.folders.data, 'ground', 'interfaces'), 'link set nothing up\n')

  const start = driver.start(machineSpec(), never)

  await assert.rejects(start, /Cannot find device "nothing"/)
  assert.match((await driver.problem()) ?? '', /could not be started: .*Cannot find device "nothing"/s)
  assert.deepEqual(await ground.remains(), [])
  await chmod(agent, 0o700)
})

test('opens a route for the machine’s time, and starts none without', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  const closed: SessionId[] = []
  const cutOff = await ground.openDriver({
    routes: {
      openRoute: async () => Promise.reject(new Error('egress is away')),
      closeRoute: async (sessionId) => void closed.push(sessionId),
    },
  })
  const refused = machineSpec()

  const { sessionId } = await driver.start(machineSpec(), never)
  const rejection = assert.rejects(cutOff.start(refused, never), /egress is away/)

  assert.equal(ground.routes.get(sessionId)?.socketPath, machineFolders(ground.folders, sessionId).egressSocket)
  assert.equal(ground.routes.get(sessionId)?.socketMode, process.geteuid?.() === 0 ? 0o666 : 0o600)
  await rejection
  assert.deepEqual(closed, [refused.sessionId])
  await driver.stop(sessionId)
  assert.equal(ground.routes.size, 0)
})

test('removes what is left although egress fails, and says so', async (context) => {
  const ground = await openGround(context)
  let isAway = true
  const routes = {
    openRoute: async () => {},
    closeRoute: async () => (isAway ? Promise.reject(new Error('egress is away')) : undefined),
  }
  const driver = await ground.openDriver({ routes })
  const machine = await driver.start(machineSpec(), never)

  await assert.rejects(driver.stop(machine.sessionId), /egress is away/)
  await machine.ended
  assert.deepEqual(await ground.processesOf(machine.sessionId), [])
  isAway = false
  await driver.stop(machine.sessionId)

  assert.deepEqual(await ground.remains(), [])
})

test('starts and stops other machines, and lists all, while egress hangs over one', async (context) => {
  const ground = await openGround(context)
  const hanging = Promise.withResolvers<void>()
  const hung = machineSpec()
  const routes = {
    openRoute: async () => {},
    closeRoute: (sessionId: SessionId) => (sessionId === hung.sessionId ? hanging.promise : Promise.resolve()),
  }
  const driver = await ground.openDriver({ routes })
  await driver.start(hung, never)
  const stopping = driver.stop(hung.sessionId)

  const { sessionId } = await driver.start(machineSpec(), never)
  const next = await ground.openDriver({ routes: { ...routes, openRoute: () => hanging.promise } })
  const listed = await next.list()
  await driver.stop(sessionId)

  assert.ok(listed.some((machine) => machine.sessionId === sessionId))
  hanging.resolve()
  await stopping
  assert.deepEqual(await ground.remains(), [])
})

test('ends what a machine has started to outlive it, and removes what it has locked', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  const machine = await driver.start(machineSpec(), never)
  const script = `
    trap '' TERM HUP INT
    for i in 1 2 3; do setsid nohup bash -c "trap '' TERM HUP; sleep 1000" >/dev/null 2>&1 & done
    unshare --user --map-root-user --pid --fork sleep 1000 >/dev/null 2>&1 &
    until [ $(pgrep -c -x sleep) = 4 ]; do :; done
    mkdir -p ~/locked/inner && touch ~/locked/inner/file && chmod 0 ~/locked/inner ~/locked`
  const { output } = await runIn(machine, '/bin/bash', '-c', script)
  assert.equal(output, '')
  assert.ok((await ground.processesOf(machine.sessionId)).length >= 8)

  await driver.stop(machine.sessionId)

  assert.deepEqual(await ground.remains(), [])
})

test('does not take a program in a machine for a machine', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  const machine = await driver.start(machineSpec(), never)
  const invented = machineSpec().sessionId
  const disguise = machineFolders(ground.folders, invented).egress
  const script = `
    bash -c 'exec -a ${disguise} sleep 1000' >/dev/null 2>&1 &
    unshare --user --map-root-user --pid --fork bash -c 'exec -a ${disguise} sleep 1000' >/dev/null 2>&1 &
    until [ $(pgrep -c -x sleep) = 2 ]; do :; done`
  await runIn(machine, '/bin/bash', '-c', script)

  const listed = await (await ground.openDriver()).list()

  assert.deepEqual(
    listed.map(({ sessionId }) => sessionId),
    [machine.sessionId],
  )
})

test('keeps a machine to its number of processes', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver({ tasksPerGibibyte: 100 })
  if (!driver.capabilities.canLimit) return context.skip('no control groups here')
  const [greedy, other] = await Promise.all([driver.start(machineSpec(), never), driver.start(machineSpec(), never)])

  const script =
    'for (1 .. 300) { my $p = fork; last unless defined $p; if (!$p) { close STDOUT; close STDERR; sleep 1000; exit } } print $!'
  const { output } = await runIn(greedy, '/usr/bin/perl', '-e', script)

  assert.equal(output, 'Resource temporarily unavailable')
  assert.ok((await ground.processesOf(greedy.sessionId)).length <= 110)
  assert.equal(
    (await runIn(other, '/bin/bash', '-c', 'for i in $(seq 50); do sleep 0 & done; wait; echo ok')).output,
    'ok\n',
  )
})

test('keeps a machine to its memory, and ends only the program that took it', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  if (!driver.capabilities.canLimit) return context.skip('no control groups here')
  const machine = await driver.start(machineSpec({ memory: '1GiB' }), never)
  const take = (mebibytes: number) =>
    runIn(machine, '/usr/bin/perl', '-e', `my $x = "a" x (${mebibytes} << 20); print "taken"`)

  const [less, more] = [await take(300), await take(2000)]

  assert.equal(less.output, 'taken')
  assert.notEqual(more.output, 'taken')
  assert.equal(await driver.countMemoryKills(machine.sessionId), 1)
  assert.equal((await runIn(machine, '/bin/echo', 'alive')).output, 'alive\n')
})

test('passes what the machine writes to its log', async (context) => {
  const ground = await openGround(context)
  const driver = await ground.openDriver()
  const machine = await driver.start(machineSpec(), never)
  await ask(machine, '/write', Array.from({ length: 30 }, (_, index) => `line ${index + 1}\n`).join(''))

  const lines = (await driver.lastLines(machine.sessionId)).split('\n')

  assert.equal(lines.length, 20)
  assert.equal(lines.at(-1), 'line 30')
})
