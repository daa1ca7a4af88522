import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { confinedCommand } from './confined-process.ts'
import { findOwnProcesses } from './own-processes.ts'
import { findInPasswd, openServiceUser, openServiceUsers } from './service-user.ts'

const run = promisify(execFile)
const isRoot = process.geteuid?.() === 0

/** Below root's home, which no other user can enter. */
async function foldersOfRoot(context: TestContext) {
  const user = await openServiceUser('egress')
  assert.ok(user)
  const folder = await mkdtemp('/root/.berth-test-')
  context.after(() => rm(folder, { recursive: true }))
  const [program, writable] = [join(folder, 'program'), join(folder, 'writable')]
  await mkdir(program)
  await mkdir(writable)
  await chown(writable, user.uid, user.gid)
  return { user, folder, program, writable }
}

test('as root, runs a program as an unprivileged user who sees only the named paths', {
  skip: !isRoot,
}, async (context) => {
  const { user, folder, program, writable } = await foldersOfRoot(context)
  await writeFile(join(folder, 'secret'), 'secret')
  await writeFile(
    join(program, 'tool'),
    '#!/bin/sh\nid -u\ngrep -c . /etc/passwd > $1/out\nls $2\ncat /proc/self/status\n',
    { mode: 0o755 },
  )

  const command = await confinedCommand({
    program: join(program, 'tool'),
    args: [writable, folder],
    user,
    readOnly: [program],
    writable: [writable],
  })
  const { stdout } = await run(command.program, command.args)

  assert.match(stdout, new RegExp(`^${user.uid}\\nprogram\\nwritable\\n`))
  assert.match(stdout, /^CapEff:\t0+$/m)
  assert.match(stdout, /^CapBnd:\t0+$/m)
  assert.match(stdout, /^NoNewPrivs:\t1$/m)
  assert.equal((await stat(join(writable, 'out'))).uid, user.uid)
})

test('lets the program write only where permitted', { skip: !isRoot }, async (context) => {
  const { user, program } = await foldersOfRoot(context)

  const places = ['/', '/usr', '/etc', '/root', program]
  const script = places.map((place) => `touch ${place}/x 2>/dev/null && echo ${place}`).join('; ')
  const command = await confinedCommand({
    program: '/bin/sh',
    args: ['-c', `${script}; true`],
    user,
    readOnly: [program],
    writable: [],
  })
  const { stdout } = await run(command.program, command.args)

  assert.equal(stdout, '')
})

test('exits with the program’s own exit code', { skip: !isRoot }, async () => {
  const user = await openServiceUser('egress')

  const command = await confinedCommand({
    program: '/bin/sh',
    args: ['-c', 'exit 7'],
    user,
    readOnly: [],
    writable: [],
  })

  await assert.rejects(run(command.program, command.args), { code: 7 })
})

test('lets a program leave a daemon behind', { skip: !isRoot }, async (context) => {
  const { user, writable } = await foldersOfRoot(context)
  const script =
    'setsid sh -c \'echo $$ > $0/pid; mkfifo $0/fifo; read line < $0/fifo; echo "$line" > $0/heard; echo > $0/fifo\' "$0" </dev/null >/dev/null 2>&1 & until [ -p $0/fifo ]; do :; done'

  const command = await confinedCommand({
    program: '/bin/sh',
    args: ['-c', script, writable],
    user,
    readOnly: [],
    writable: [writable],
  })
  await run(command.program, command.args)
  const pid = await readFile(join(writable, 'pid'), 'utf8')
  const uid = /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${pid.trim()}/status`, 'utf8'))?.[1]
  await writeFile(join(writable, 'fifo'), 'still here\n')
  await readFile(join(writable, 'fifo'))

  assert.equal(uid, String(user.uid))
  assert.equal(await readFile(join(writable, 'heard'), 'utf8'), 'still here\n')
})

test('as an ordinary user, runs a program unconfined', async () => {
  const command = await confinedCommand({
    program: '/bin/echo',
    args: ['hello'],
    user: undefined,
    readOnly: ['/usr'],
    writable: [],
  })

  assert.deepEqual(command, { program: '/bin/echo', args: ['hello'] })
})

test('needs no service user when berth is not root', { skip: isRoot }, async () => {
  assert.equal(await openServiceUser('egress'), undefined)
})

test('finds a user by its whole name', () => {
  const passwd =
    'root:x:0:0:root:/root:/bin/sh\nberthtest:x:1001:1001::/home/berthtest:/bin/sh\nberth:x:999:995::/home/berth:/bin/false\n'

  assert.deepEqual(findInPasswd(passwd, 'berth'), { uid: 999, gid: 995 })
  assert.equal(findInPasswd(passwd, 'bert'), undefined)
})

test('can show a program only its own processes, and ends them with the first one', {
  skip: !isRoot,
}, async (context) => {
  const { user, writable } = await foldersOfRoot(context)
  const command = await confinedCommand({
    program: '/bin/sh',
    args: ['-c', 'ls /proc | grep -c "^[0-9]"; kill -9 $0; sleep 1000', String(process.pid), writable],
    user,
    readOnly: [],
    writable: [writable],
    seesOwnProcessesOnly: true,
  })
  const child = spawn(command.program, command.args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const [count] = (await once(child.stdout, 'data')) as [Buffer]

  const found = await findOwnProcesses((args) => args.includes(writable))
  for (const pid of found) process.kill(pid, 'SIGKILL')
  await once(child.stdout, 'close')

  assert.ok(Number(count) < 6, `it sees ${count} processes`)
  // bubblewrap outside and inside, but not the program, which could have any command line.
  assert.equal(found.length, 2)
})

test('gives each helper a separate user', { skip: !isRoot }, async () => {
  const users = await openServiceUsers()

  assert.ok(users.database && users.egress)
  assert.notEqual(users.database.uid, users.egress.uid)
  assert.notEqual(users.database.gid, users.egress.gid)
})
