import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openServiceUser } from '../../host/service-user.ts'
import { ask } from '../../testing/ask.ts'
import { LocalTestbed, runIn } from '../../testing/machines/local-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import { machineFolders } from './machine-folders.ts'

const never = new AbortController().signal

async function openTestbed(context: TestContext): Promise<LocalTestbed> {
  const testbed = await LocalTestbed.open()
  context.after(() => testbed.close())
  return testbed
}

test('a failed start is reported with the last lines of the machine', async (context) => {
  const testbed = await openTestbed(context)
  const agent = join(testbed.folders.data, 'broken-agent.ts')
  await writeFile(agent, "console.error('the display is missing'); process.exit(3)")
  const driver = await testbed.openDriver({ programs: { entries: { agent }, packages: [] } })

  const start = driver.start(machineSpec(), never)

  await assert.rejects(start, /its agent did not respond\nthe display is missing/)
  assert.deepEqual(await testbed.remains(), [])
})

test('explains a sandbox that cannot be built', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  // Every machine needs this shared file.
  const agent = join(testbed.folders.data, 'agent')
  await chmod(agent, 0)
  await writeFile(join(testbed.folders.data, 'sandbox', 'interfaces'), 'link set nothing up\n')

  const start = driver.start(machineSpec(), never)

  await assert.rejects(start, /Cannot find device "nothing"/)
  assert.match((await driver.problem()) ?? '', /could not be started: .*Cannot find device "nothing"/s)
  assert.deepEqual(await testbed.remains(), [])
  await chmod(agent, 0o700)
})

test('the socket for egress is in a folder that the machine sees and only egress can write', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  const egressUser = await openServiceUser('egress')

  const { id, egressSocket } = await driver.start(machineSpec(), never)

  assert.equal(egressSocket.path, machineFolders(testbed.folders, id).egressSocket)
  assert.equal(egressSocket.mode, egressUser ? 0o666 : 0o600)
  const { uid, mode } = await stat(dirname(egressSocket.path))
  assert.equal(uid, egressUser?.uid ?? process.geteuid?.())
  assert.equal(mode & 0o777, 0o755)
})

test('lists machines without watching them', async (context) => {
  const testbed = await openTestbed(context)
  const { id } = await (await testbed.openDriver()).start(machineSpec(), never)
  const next = await testbed.openDriver()
  const lifelines = () => countSockets(machineFolders(testbed.folders, id).lifeline)
  const before = await lifelines()

  const listed = await next.list()

  assert.deepEqual(listed, [id])
  assert.equal(await lifelines(), before, 'no connection is opened')
})

test('ends processes that try to outlive the machine, and removes protected files', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  const machine = await driver.start(machineSpec(), never)
  const script = `
    trap '' TERM HUP INT
    for i in 1 2 3; do setsid nohup bash -c "trap '' TERM HUP; sleep 1000" >/dev/null 2>&1 & done
    unshare --user --map-root-user --pid --fork sleep 1000 >/dev/null 2>&1 &
    until [ $(pgrep -c -x sleep) = 4 ]; do :; done
    mkdir -p ~/locked/inner && touch ~/locked/inner/file && chmod 0 ~/locked/inner ~/locked`
  const { output } = await runIn(machine, '/bin/bash', '-c', script)
  assert.equal(output, '')
  assert.ok((await testbed.processesOf(machine.id)).length >= 8)

  await driver.stop(machine.id)

  assert.deepEqual(await testbed.remains(), [])
})

test('does not mistake a program in a machine for a machine', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  const machine = await driver.start(machineSpec(), never)
  const invented = machineSpec().id
  const disguise = machineFolders(testbed.folders, invented).egress
  const script = `
    bash -c 'exec -a ${disguise} sleep 1000' >/dev/null 2>&1 &
    unshare --user --map-root-user --pid --fork bash -c 'exec -a ${disguise} sleep 1000' >/dev/null 2>&1 &
    until [ $(pgrep -c -x sleep) = 2 ]; do :; done`
  await runIn(machine, '/bin/bash', '-c', script)

  const listed = await (await testbed.openDriver()).list()

  assert.deepEqual(listed, [machine.id])
})

test('limits the processes of a machine', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver({ tasksPerGibibyte: 100 })
  if (!driver.capabilities.canLimit) return context.skip('no control groups here')
  const [greedy, other] = await Promise.all([driver.start(machineSpec(), never), driver.start(machineSpec(), never)])

  const script =
    'for (1 .. 300) { my $p = fork; last unless defined $p; if (!$p) { close STDOUT; close STDERR; sleep 1000; exit } } print $!'
  const { output } = await runIn(greedy, '/usr/bin/perl', '-e', script)

  assert.equal(output, 'Resource temporarily unavailable')
  assert.ok((await testbed.processesOf(greedy.id)).length <= 110)
  assert.equal(
    (await runIn(other, '/bin/bash', '-c', 'for i in $(seq 50); do sleep 0 & done; wait; echo ok')).output,
    'ok\n',
  )
})

test('limits the memory of a machine, and kills only the program that exceeded it', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  if (!driver.capabilities.canLimit) return context.skip('no control groups here')
  const machine = await driver.start(machineSpec({ memory: '1GiB' }), never)
  const take = (mebibytes: number) =>
    runIn(machine, '/usr/bin/perl', '-e', `my $x = "a" x (${mebibytes} << 20); print "taken"`)

  const [less, more] = [await take(300), await take(2000)]

  assert.equal(less.output, 'taken')
  assert.notEqual(more.output, 'taken')
  assert.equal(await driver.countMemoryKills(machine.id), 1)
  assert.equal((await runIn(machine, '/bin/echo', 'alive')).output, 'alive\n')
})

test('writes the output of the machine to its log', async (context) => {
  const testbed = await openTestbed(context)
  const driver = await testbed.openDriver()
  const machine = await driver.start(machineSpec(), never)
  await ask(machine, '/write', Array.from({ length: 30 }, (_, index) => `line ${index + 1}\n`).join(''))

  const lines = (await driver.lastLines(machine.id)).split('\n')

  assert.equal(lines.length, 20)
  assert.equal(lines.at(-1), 'line 30')
})

/** The number of unix sockets with this path: the listener and each connection to it. */
async function countSockets(path: string): Promise<number> {
  return (await readFile('/proc/net/unix', 'utf8')).split('\n').filter((line) => line.endsWith(path)).length
}
