import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkoutFolder } from './output.ts'

interface Result {
  readonly exitCode: number
  readonly pid: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** The programs of a minimal Debian that the launcher uses. */
const systemPrograms = 'cat cmp cp dirname flock grep head ln mkdir mv readlink rm sed sh uname'.split(' ')

/** Installs instantly and records its calls. With `BROKEN_NPM` it fails half-way, as npm does. */
const fakeNpm = `
action=$1 folder=$3 package=\${5%@24}
echo "$action" >> "$NPM_CALLS"
[ "$action" = install ] || rm -rf "$folder/node_modules"
mkdir -p "$folder/node_modules"
if [ "$BROKEN_NPM" = "$action" ]; then
  echo 'npm error code ENOTFOUND' >&2
  echo 'npm error syscall getaddrinfo' >&2
  echo 'npm error network request failed, reason: no such host' >&2
  exit 1
fi
[ "$action" = install ] || exit 0
mkdir -p "$folder/node_modules/$package/bin"
ln -s "$REAL_NODE" "$folder/node_modules/$package/bin/node"`

/** Prints its arguments. */
const fakeMain = `
console.log(JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd(), pid: process.pid }))
process.exitCode = 7
`

/** A checkout that contains only the launcher, on a machine with Node.js 20 and the fake npm. */
class Checkout {
  readonly folder: string
  readonly #programs: string
  readonly #npmCalls: string

  private constructor(folder: string) {
    this.folder = join(folder, 'a check out')
    this.#programs = join(folder, 'programs')
    this.#npmCalls = join(folder, 'npm-calls')
  }

  static async create(): Promise<Checkout> {
    const checkout = new Checkout(await mkdtemp(join(tmpdir(), 'berth-launcher-')))
    await mkdir(checkout.#path('packages/cli/src'), { recursive: true })
    await cp(join(checkoutFolder, 'berth'), checkout.#path('berth'))
    await writeFile(checkout.#path('packages/cli/src/main.ts'), fakeMain)
    await checkout.writeLockFile(1)
    await mkdir(checkout.#programs)
    for (const name of systemPrograms) await symlink(join('/usr/bin', name), join(checkout.#programs, name))
    await checkout.addProgram('node', 'echo v20.20.2')
    await checkout.addProgram('npm', fakeNpm)
    return checkout
  }

  async addProgram(name: string, script: string): Promise<void> {
    await writeFile(join(this.#programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }

  async removeProgram(name: string): Promise<void> {
    await rm(join(this.#programs, name))
  }

  async writeLockFile(version: number): Promise<void> {
    await writeFile(this.#path('package-lock.json'), `{ "integrity": "${version}" }\n`)
  }

  /** Creates the marker of a complete manual install, a second newer than the lock file. */
  async installByHand(): Promise<void> {
    const { mtimeMs } = await stat(this.#path('package-lock.json'))
    const mark = this.#path('node_modules/.package-lock.json')
    await writeFile(mark, '{}')
    await utimes(mark, new Date(), new Date(mtimeMs + 1000))
  }

  #path(name: string): string {
    return join(this.folder, name)
  }

  /** The calls of npm, in order. */
  async npmCalls(): Promise<string[]> {
    return (await readFile(this.#npmCalls, 'utf8')).trim().split('\n')
  }

  start(args: readonly string[] = [], { path = this.#path('berth'), cwd = '/', brokenNpm = '' } = {}): Promise<Result> {
    const environment = {
      PATH: this.#programs,
      NPM_CALLS: this.#npmCalls,
      REAL_NODE: process.execPath,
      BROKEN_NPM: brokenNpm,
    }
    return new Promise((resolve) => {
      const child = execFile(path, args, { cwd, env: environment }, (error, stdout, stderr) =>
        resolve({ exitCode: Number(error?.code ?? 0), pid: child.pid, stdout, stderr }),
      )
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(join(this.folder, '..'), { recursive: true })
  }
}

test('the first start installs Node.js and the packages, and the second installs nothing', async () => {
  await using checkout = await Checkout.create()

  const first = await checkout.start(['serve'])
  const second = await checkout.start(['serve'])

  assert.match(
    first.stderr,
    /^berth: installing Node\.js 24 from the npm package node-linux-\w+ \(this machine's own: v20\.20\.2\)$/m,
  )
  assert.match(first.stderr, /^berth: installing 1 npm packages/m)
  assert.equal(second.stderr, '')
  assert.deepEqual(await checkout.npmCalls(), ['install', 'ci'])
})

test('arguments, working folder and exit code pass through, from a link and with spaces in the path', async () => {
  await using checkout = await Checkout.create()
  const link = join(checkout.folder, '..', 'my berth')
  await symlink(join(checkout.folder, 'berth'), link)

  const { exitCode, stdout } = await checkout.start(['test', 'a b', '*', ''], { path: link, cwd: tmpdir() })

  assert.equal(exitCode, 7)
  assert.partialDeepStrictEqual(JSON.parse(stdout), { args: ['test', 'a b', '*', ''], cwd: tmpdir() })
})

test("the launcher's process becomes the program itself", async () => {
  await using checkout = await Checkout.create()

  const first = await checkout.start()
  const second = await checkout.start()

  assert.equal(JSON.parse(first.stdout).pid, first.pid)
  assert.equal(JSON.parse(second.stdout).pid, second.pid)
})

test('packages are installed again when the lock file has changed', async () => {
  await using checkout = await Checkout.create()
  await checkout.start()
  await checkout.writeLockFile(2)

  await checkout.start()
  await checkout.start()

  assert.deepEqual(await checkout.npmCalls(), ['install', 'ci', 'ci'])
})

test("a developer's own npm install is not repeated", async () => {
  await using checkout = await Checkout.create()
  await checkout.start()
  await checkout.writeLockFile(2)
  await checkout.installByHand()

  const { exitCode } = await checkout.start()

  assert.equal(exitCode, 7)
  assert.deepEqual(await checkout.npmCalls(), ['install', 'ci'])
})

test('a failed install prints one line, sets an exit code, and is repeated at the next start', async () => {
  await using checkout = await Checkout.create()
  await checkout.start()
  await checkout.writeLockFile(2)

  const failed = await checkout.start([], { brokenNpm: 'ci' })
  const repeated = await checkout.start()

  assert.equal(failed.exitCode, 69)
  assert.equal(failed.stdout, '')
  assert.match(
    failed.stderr,
    /^berth: could not install the npm packages: network request failed, reason: no such host\. /m,
  )
  assert.match(failed.stderr, /npm\.log$/m)
  assert.equal(repeated.exitCode, 7)
  assert.deepEqual(await checkout.npmCalls(), ['install', 'ci', 'ci', 'ci'])
})

test('a Node.js that could not be installed is installed at the next start', async () => {
  await using checkout = await Checkout.create()

  const failed = await checkout.start([], { brokenNpm: 'install' })
  const repeated = await checkout.start()

  assert.equal(failed.exitCode, 69)
  assert.match(failed.stderr, /^berth: could not install Node\.js 24: network request failed/m)
  assert.equal(repeated.exitCode, 7)
})

test('of several first starts one installs, and all work', async () => {
  await using checkout = await Checkout.create()

  const results = await Promise.all(Array.from({ length: 5 }, () => checkout.start()))

  assert.deepEqual(
    results.map(({ exitCode }) => exitCode),
    [7, 7, 7, 7, 7],
  )
  assert.deepEqual(await checkout.npmCalls(), ['install', 'ci'])
})

test('a machine without npm is told how to get it', async () => {
  await using checkout = await Checkout.create()
  await checkout.removeProgram('npm')

  const { exitCode, stderr } = await checkout.start()

  assert.equal(exitCode, 69)
  assert.match(stderr, /apt-get install -y npm/)
})

test('a machine whose own Node.js is new enough uses it', async () => {
  await using checkout = await Checkout.create()
  await checkout.addProgram('node', `exec "${process.execPath}" "$@"`)

  const { exitCode } = await checkout.start()

  assert.equal(exitCode, 7)
  assert.deepEqual(await checkout.npmCalls(), ['ci'])
})
