import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

interface Result {
  readonly exitCode: number
  readonly stderr: string
}

/** Reports every package but xclip as installed. xclip counts as installed once the fake apt-get creates its file. */
const fakeDpkgQuery = `
for name in dpkg ${systemPackages.map(({ name }) => name).join(' ')}; do
  [ $name = xclip ] && ! [ -e "$STATE/xclip" ] || echo "ii  $name"
done`

/**
 * Prints progress to the given descriptor and closes it in child processes, as apt does. Fails as often as `FAILURES`
 * says, like apt with outdated lists. Records its calls.
 */
const fakeAptGet = `
for option; do case $option in APT::Status-Fd=*) progress=\${option#*=} ;; esac; done
while [ "$1" != install ] && [ "$1" != update ]; do shift; done
echo "$*" >> "$STATE/calls"
[ "$1" = install ] || exit 0
if [ $(grep -c install "$STATE/calls") -le "$FAILURES" ]; then
  echo 'E: Failed to fetch xclip.deb  404  Not Found' >&2
  echo 'E: Unable to fetch some archives' >&2
  exit 100
fi
eval "echo 'dlstatus:1:100:Retrieving file 1 of 1' >&$progress"
eval "exec $progress>&-"
echo 'Setting up xclip' || exit 100
touch "$STATE/xclip"`

/** A Debian without xclip. */
class Machine {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async create(): Promise<Machine> {
    const machine = new Machine(await mkdtemp(join(tmpdir(), 'berth-setup-test-')))
    for (const name of ['sh', 'env', 'grep', 'touch', 'flock', 'true'])
      await symlink(`/usr/bin/${name}`, machine.#path(name))
    await machine.#addProgram('dpkg-query', fakeDpkgQuery)
    await machine.#addProgram('apt-get', fakeAptGet)
    await machine.#addProgram('dpkg', 'exit 0')
    return machine
  }

  #path(name: string): string {
    return join(this.#folder, name)
  }

  async #addProgram(name: string, script: string): Promise<void> {
    await writeFile(this.#path(name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }

  /** Lets ordinary users become root without a password, as far as `sudo` permits. */
  async addSudo(): Promise<void> {
    await this.#addProgram('sudo', 'shift; echo sudo >> "$STATE/calls"; exec "$@"')
  }

  async replacePackageQuery(script: string): Promise<void> {
    await this.#addProgram('dpkg-query', script)
  }

  /** The calls of apt and sudo, in order. */
  async calls(): Promise<string[]> {
    const text = await readFile(this.#path('calls'), 'utf8').catch(() => '')
    return text.split('\n').filter(Boolean)
  }

  /** Runs `./berth setup` as the user. */
  setup(uid: number, failures = 0): Promise<Result> {
    const asUser = `data:text/javascript,process.getuid = () => ${uid}`
    const args = ['--import', asUser, join(import.meta.dirname, '..', 'main.ts'), 'setup']
    const environment = { PATH: this.#folder, STATE: this.#folder, FAILURES: String(failures), TMPDIR: this.#folder }
    return new Promise((resolve) => {
      execFile(process.execPath, args, { env: environment }, (error, _stdout, stderr) =>
        resolve({ exitCode: Number(error?.code ?? 0), stderr }),
      )
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true })
  }
}

const root = 0
const ordinary = 1000
const installation = 'install --no-install-recommends xclip'

test('setup installs what is missing, shows it, and then has nothing to do', async () => {
  await using machine = await Machine.create()

  const first = await machine.setup(root)
  const second = await machine.setup(root)

  assert.deepEqual(first, {
    exitCode: 0,
    stderr:
      'berth: installing xclip: clipboard of headful sessions\nberth: 100 % downloaded\nberth: everything is installed\n',
  })
  assert.equal(second.stderr, 'berth: everything is installed\n')
  assert.deepEqual(await machine.calls(), [installation])
})

test('setup updates the package lists only when it cannot install without', async () => {
  await using machine = await Machine.create()

  const { exitCode } = await machine.setup(root, 1)

  assert.equal(exitCode, 0)
  assert.deepEqual(await machine.calls(), [installation, 'update -o APT::Update::Error-Mode=any', installation])
})

test('a failure of apt is one line with its first error and the place of its log', async () => {
  await using machine = await Machine.create()

  const { exitCode, stderr } = await machine.setup(root, 2)

  const lastLine = stderr.trimEnd().split('\n').at(-1) ?? ''
  const logPath = lastLine.split(' ').at(-1) ?? ''
  assert.equal(exitCode, 69)
  assert.match(
    lastLine,
    /^berth: apt could not install the packages: Failed to fetch xclip\.deb {2}404 {2}Not Found\. /,
  )
  assert.match(await readFile(logPath, 'utf8'), /Unable to fetch some archives/)
})

test('an ordinary user installs with sudo', async () => {
  await using machine = await Machine.create()
  await machine.addSudo()

  const { exitCode } = await machine.setup(ordinary)

  assert.equal(exitCode, 0)
  assert.ok((await machine.calls()).includes('sudo'))
})

test('a user who cannot become root is told what is missing and what root has to run', async () => {
  await using machine = await Machine.create()

  const result = await machine.setup(ordinary)

  assert.deepEqual(result, {
    exitCode: 69,
    stderr:
      'berth: these packages are missing: xclip. ' +
      'Run as root: apt-get update && apt-get install -y --no-install-recommends xclip\n',
  })
})

for (const [loss, script] of Object.entries({
  // The message of dpkg-query.
  'whose database cannot be read': 'echo "dpkg-query: error: failed to open package info file" >&2; exit 2',
  'that has no database': 'echo "dpkg-query: no packages found matching chromium" >&2; exit 1',
})) {
  test(`setup on a system ${loss} reports that in one line`, async () => {
    await using machine = await Machine.create()
    await machine.replacePackageQuery(script)

    const { exitCode, stderr } = await machine.setup(root)

    assert.equal(exitCode, 69)
    assert.match(stderr, /^berth: berth cannot determine the installed packages .* what is missing\n$/)
  })
}

test('of several setups at once one installs, and all succeed', async () => {
  await using machine = await Machine.create()

  const results = await Promise.all(Array.from({ length: 4 }, () => machine.setup(root)))

  assert.deepEqual(
    results.map(({ exitCode }) => exitCode),
    [0, 0, 0, 0],
  )
  assert.deepEqual(await machine.calls(), [installation])
})
