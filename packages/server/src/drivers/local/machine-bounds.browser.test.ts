import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { ask } from '../../testing/ask.ts'
import { LocalTestbed, runIn } from '../../testing/machines/local-testbed.ts'
import { machineSpec } from '../../testing/machines/machine-spec.ts'
import type { Machine } from '../driver.ts'
import { findHierarchies } from './cgroups/cgroup-hierarchies.ts'
import { findBounds } from './cgroups/cgroups.ts'
import type { LocalDriverOptions } from './local-driver.ts'
import { machineFolders } from './machine-folders.ts'

/* The limits of a machine. machine-lifecycle.browser.test.ts tests memory and processes. */

const never = new AbortController().signal
const mebibyte = 1024 ** 2
const isRoot = process.geteuid?.() === 0

async function startMachine(context: TestContext, options: Partial<LocalDriverOptions> = {}) {
  const testbed = await LocalTestbed.open()
  context.after(() => testbed.close())
  const driver = await testbed.openDriver(options)
  const machine = await driver.start(machineSpec(), never)
  return { testbed, driver, machine, folders: machineFolders(testbed.folders, machine.id) }
}

async function perl(machine: Machine, script: string): Promise<string> {
  return (await runIn(machine, '/usr/bin/perl', '-e', script)).output
}

/** Writes until it fails, and prints the number of MiB written and the reason of the failure. */
const fill = (path: string) =>
  `open F, ">", "${path}"; $x = "x" x (1 << 20); $n = 0; $n++ while $n < 2000 && syswrite F, $x; print "$n $!"`

test('a machine that fills its disk uses no more space of the host', {
  skip: !isRoot && 'a machine of an ordinary user has no disk of its own',
}, async (context) => {
  const { machine, folders } = await startMachine(context, { diskBytes: 192 * mebibyte })

  const [home, temporary] = [await perl(machine, fill('/home/kernel/large')), await perl(machine, fill('/tmp/large'))]

  assert.match(home, /^1[0-9]{2} No space left on device$/)
  assert.match(temporary, /^[0-9] No space left on device$/)
  assert.ok((await stat(folders.diskImage)).blocks * 512 <= 192 * mebibyte)
  assert.equal((await runIn(machine, '/bin/echo', 'alive')).output, 'alive\n')
})

test('a machine runs out of files before the host does', { skip: !isRoot }, async (context) => {
  const { machine } = await startMachine(context, { diskBytes: 128 * mebibyte })

  const made = await perl(machine, '$n = 1; $n++ while $n < 100_000 && open F, ">", "/home/kernel/$n"; print $!')

  assert.equal(made, 'No space left on device')
})

test('without separate disks, a machine that writes too much is ended', {
  timeout: 60_000,
}, async (context) => {
  const options = { hasDiskImages: false, diskBytes: 300 * mebibyte }
  const { driver, machine } = await startMachine(context, options)
  const modest = await driver.start(machineSpec(), never)
  await perl(modest, fill('/home/kernel/modest').replace('2000', '200'))

  const writing = perl(machine, `${fill('/home/kernel/large')}; sleep 1000`).catch(() => 'ended')

  assert.equal(await writing, 'ended')
  await machine.ended
  assert.equal((await runIn(modest, '/bin/echo', 'alive')).output, 'alive\n')
})

test('a machine that floods its log is ended', { timeout: 60_000 }, async (context) => {
  const { machine } = await startMachine(context)
  let hasEnded = false
  void machine.ended.then(() => {
    hasEnded = true
  })
  const much = 'x'.repeat(32 * mebibyte)

  // The output of the agent becomes the log.
  while (!hasEnded) {
    // Together they exceed the limit. More before the next look at logs would only take processor time.
    for (let write = 0; write < 3; write++) await ask(machine, '/write', much).catch(() => {})
    await delay(700)
  }

  assert.equal(hasEnded, true)
})

test('open files are limited for each program, and terminals for each machine', async (context) => {
  const { machine } = await startMachine(context)

  const files = await perl(machine, 'while (open my $f, "<", "/dev/null") { push @all, $f } print scalar @all')
  const terminals = await perl(
    machine,
    'use Fcntl; while (sysopen my $f, "/dev/ptmx", O_RDWR | O_NOCTTY) { push @all, $f } print scalar @all',
  )

  assert.ok(Number(files) <= 16_384, `${files} files`)
  assert.equal(terminals, '256')
})

test('a machine that fills the host’s table of open files is ended', { timeout: 60_000 }, async (context) => {
  const { driver, machine } = await startMachine(context)
  if (!driver.capabilities.canLimit) return context.skip('no control groups here')
  const hoard = 'for (1 .. 9) { last unless fork } while (open my $f, "<", "/dev/null") { push @all, $f } sleep 1000'
  const modest = await driver.start(machineSpec(), never)

  await perl(machine, hoard).catch(() => {})
  await machine.ended

  assert.equal((await runIn(modest, '/bin/echo', 'alive')).output, 'alive\n')
})

test('machines share the processor evenly, whatever number of threads they have', {
  timeout: 60_000,
}, async (context) => {
  const { driver, machine } = await startMachine(context)
  if (!(await findBounds(await findHierarchies())).includes('share of the processor'))
    return context.skip('no control group for it')
  const busy = (processes: number) =>
    `my @pids = map { my $p = fork; if (!$p) { 1 while 1 } $p } 1 .. ${processes}; sleep 1; $t = 0;
     for (@pids) { open F, "/proc/$_/stat"; @s = split / /, <F>; $t += $s[13] } kill 9, @pids; print $t`
  const modest = await driver.start(machineSpec(), never)

  const [many, few] = await Promise.all([perl(machine, busy(40)), perl(modest, busy(8))])

  assert.ok(Number(many) < 2 * Number(few), `40 processes had ${many} ticks, 8 processes ${few}`)
})

test('the kernel’s memory for connections is limited if it is counted separately', async (context) => {
  const { machine } = await startMachine(context)
  if (!(await findBounds(await findHierarchies())).includes('memory of connections'))
    return context.skip('not counted apart')
  const script = `
    use Socket; socket(L, PF_INET, SOCK_STREAM, 0); bind(L, sockaddr_in(0, INADDR_LOOPBACK)); listen(L, 1000);
    $x = "x" x (1 << 20);
    for (1 .. 400) {
      socket(my $c, PF_INET, SOCK_STREAM, 0); connect($c, getsockname L) or last; accept(my $s, L); push @all, $c, $s;
      setsockopt($s, SOL_SOCKET, SO_RCVBUF, 4 << 20); $c->blocking(0) if $c->can("blocking");
      use Fcntl; fcntl($c, F_SETFL, O_NONBLOCK); 1 while syswrite $c, $x;
    }
    open F, "/proc/net/sockstat"; /^TCP:.* mem (\\d+)/ and print $1 for <F>`

  const pages = Number(await perl(machine, script))

  assert.ok(pages > 0 && pages * 4096 < 128 * mebibyte, `${pages} pages`)
})
