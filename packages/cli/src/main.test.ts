import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import packageJson from '../package.json' with { type: 'json' }

interface Result {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

function berth(...args: readonly string[]): Promise<Result> {
  return new Promise((resolve) => {
    execFile(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args], (error, stdout, stderr) => {
      resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr })
    })
  })
}

const groups = ['org', 'keys']
const commands = ['serve', 'setup', 'doctor', 'test', 'check', 'bench']
const inGroups = ['org create', 'org list', 'keys create', 'keys list', 'keys revoke']
test('the help lists every command, and each has a help of its own, with an example', async () => {
  const { stdout } = await berth('--help')
  for (const name of [...groups, ...commands]) assert.match(stdout, new RegExp(`^  ${name} `, 'm'))

  for (const name of [...groups, ...commands, ...inGroups]) {
    const help = await berth(...name.split(' '), '--help')
    assert.equal(help.exitCode, 0)
    assert.match(help.stdout, new RegExp(`^Usage: berth ${name}`))
    if (!groups.includes(name))
      assert.match(help.stdout, new RegExp(`\\nExample:\\n {2}berth ${name}\\b.*\\n$`), help.stdout)
  }
})

test('an unknown command is an error that names the help', async () => {
  const { exitCode, stdout, stderr } = await berth('sreve')

  assert.equal(exitCode, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /unknown command 'sreve'/)
  assert.match(stderr, /serve/)
  assert.doesNotMatch(stderr, /\n {4}at /)
})

test("--version of an app command is not the program's version", async () => {
  const own = await berth('--version')
  const ofApp = await berth('deploy', 'none.ts', '--version', '2')

  assert.equal(own.stdout, `${packageJson.version}\n`)
  assert.equal(ofApp.stderr, 'berth: none.ts is not a file\n')
})

test('an unknown flag is refused', async () => {
  const { exitCode, stderr } = await berth('serve', '--prot', '80')

  assert.equal(exitCode, 1)
  assert.match(stderr, /unknown option '--prot'/)
})

test('an invalid setting prints one line and sets an exit code, without a stack trace', async () => {
  const { exitCode, stderr } = await berth('doctor', '--port', 'many')

  assert.equal(exitCode, 64)
  assert.equal(stderr, 'berth: --port must be a whole number from 0 to 65535\n')
})

test('the doctor prints its findings as JSON for programs', async () => {
  const { exitCode, stdout } = await berth('doctor', '--json', '--port', '0')
  const report = JSON.parse(stdout)

  assert.equal(report.is_fit, exitCode === 0)
  assert.ok(
    report.findings.some(({ name, state }: { name: string; state: string }) => name === 'Node.js' && state === 'ok'),
  )
})
