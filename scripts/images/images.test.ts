import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { judgeNamespaces } from '@berth/server/host-checks/namespace-checks.ts'
import { Copy } from 'dockerfile-ast'
import { parse } from 'yaml'
import { configOf, dockerfile, readStages, type Stage } from './dockerfile.ts'

const run = promisify(execFile)
const checkout = join(import.meta.dirname, '../..')
const targets = ['server', 'machine', 'standalone']
const stages = new Map((await readStages()).map((stage) => [stage.name, stage]))
const compose = parse(await readText('compose.yaml'))
const { berth } = compose.services

function readText(path: string): Promise<string> {
  return readFile(join(checkout, path), 'utf8')
}

function stageOf(name: string): Stage {
  return stages.get(name) ?? assert.fail(`the Dockerfile has no stage ${name}`)
}

/** The stage and those that it begins with, down to the base. */
function withBases(name: string): readonly Stage[] {
  const stage = stageOf(name)
  return stages.has(stage.base) ? [...withBases(stage.base), stage] : [stage]
}

function linesOf(stage: Stage, keyword: string): readonly string[] {
  const found = stage.instructions.filter((instruction) => instruction.getKeyword() === keyword)
  return found.map((instruction) => instruction.getRawArgumentsContent() ?? '')
}

/** The packages that a target installs by name, and the files with names that it installs. */
function installsOf(name: string): readonly string[] {
  const lines = withBases(name).flatMap((stage) => linesOf(stage, 'RUN'))
  return lines.flatMap((line) => {
    const [, packages] = /apt-get install -y --no-install-recommends ([^&|]*)$/.exec(line) ?? []
    return packages?.trim().split(/\s+/) ?? []
  })
}

async function packagesOf(target: string): Promise<readonly string[]> {
  const { stdout } = await run(process.execPath, [join(import.meta.dirname, 'list-packages.ts'), target])
  return stdout.trim().split('\n')
}

test('the Dockerfile installs what build-images.sh installs, which is what setup installs', async () => {
  const [server, machine, standalone] = await Promise.all(targets.map(packagesOf))
  const list = '</mnt/machine-packages'

  assert.deepEqual(installsOf('server'), server)
  assert.deepEqual(installsOf('machine'), ['ca-certificates', list])
  assert.deepEqual(installsOf('standalone'), ['ca-certificates', list, 'tini'])
  assert.deepEqual(
    linesOf(stageOf('build'), 'RUN').at(-1),
    'node scripts/images/list-packages.ts machine >/machine-packages',
  )
  assert.deepEqual(standalone, [...(machine ?? []), 'tini'])
})

test('every target begins with the base that DEBIAN names, and is filled by fill-image.sh alone', () => {
  for (const target of targets) {
    assert.match(withBases(target)[0]?.base ?? '', /^\$\{DEBIAN}$/, target)
    const copies = stageOf(target).instructions.filter((instruction) => instruction instanceof Copy)
    assert.deepEqual(
      copies.map((copy) => `${copy.getFromFlag()?.getValue()}:${copy.getArgumentsContent()}`),
      [`${target}-files:/image /`],
    )
    const [fill = ''] = linesOf(stageOf(`${target}-files`), 'RUN')
    assert.ok(fill.endsWith(`scripts/images/fill-image.sh ${target} /image`), fill)
  }
})

test('no target runs as root', () => {
  for (const target of targets) assert.equal(configOf(stageOf(target)).User, '1000:1000', target)
})

test('build-images.sh has all targets', async () => {
  const script = await readText('scripts/images/build-images.sh')

  assert.ok(script.includes(`${targets.join(' | ')}) targets+=`))
})

test('the context of the build has no packages, history, results or secrets', async () => {
  const ignored = (await readText(`${dockerfile}.dockerignore`)).split('\n')

  for (const name of ['**/node_modules', '.git', '.tools', 'dist', '.env']) assert.ok(ignored.includes(name), name)
})

test('compose.yaml builds the target for one host, and keeps the folder that it writes', async () => {
  assert.deepEqual(berth.build, { context: '.', dockerfile, target: 'standalone' })
  const { Env, Volumes, ExposedPorts } = configOf(stageOf('standalone'))
  const [volume, folder] = berth.volumes[0].split(':')
  assert.deepEqual(Volumes, { [folder]: {} })
  assert.ok((Env as string[]).includes(`BERTH_DATA_DIR=${folder}`))
  assert.ok(volume in compose.volumes)
  assert.deepEqual(ExposedPorts, { '8080/tcp': {} })
})

test('compose.yaml publishes the port on loopback alone', () => {
  for (const port of berth.ports) assert.match(port, /^127\.0\.0\.1:[^:]*(:-\d+})?:8080$/)
})

test('compose.yaml gives berth no rights', () => {
  assert.deepEqual(berth.cap_drop, ['ALL'])
  for (const name of ['privileged', 'cap_add', 'devices', 'pid', 'ipc', 'network_mode', 'userns_mode', 'user']) {
    assert.equal(berth[name], undefined, name)
  }
  assert.ok(berth.security_opt.includes('no-new-privileges:true'))
})

test('compose.yaml has the security options that doctor asks for, and their profile allows what makes a sandbox', async () => {
  const options = berth.security_opt.filter((option: string) => option.includes('='))
  const facts = { hasSucceeded: false, output: 'not permitted', switches: {}, isContainer: true }
  const { cure } = judgeNamespaces(facts) as { cure: string }
  assert.equal(
    cure,
    `start the container with ${options.map((option: string) => `--security-opt ${option}`).join(' ')}`,
  )
  const [, path = ''] = options.find((option: string) => option.startsWith('seccomp='))?.split('=') ?? []
  await access(join(checkout, path))

  const profile = JSON.parse(await readText(path))

  const allowed: string[] = profile.syscalls.find(({ action }: { action: string }) => action === 'SCMP_ACT_ALLOW').names
  for (const name of ['unshare', 'mount', 'pivot_root', 'setns']) assert.ok(allowed.includes(name), name)
  for (const name of ['bpf', 'ptrace', 'init_module', 'open_by_handle_at']) assert.ok(!allowed.includes(name), name)
})

test('compose.yaml passes on settings that are described', async () => {
  const described = await readText('docs/operating.md')

  for (const name of Object.keys(berth.environment)) assert.ok(described.includes(`\`${name}\``), name)
})

test('compose.yaml asks for what tells that berth is ready, at the port of the image', () => {
  assert.equal(berth.healthcheck.test.at(-1), 'http://127.0.0.1:8080/health/ready')
})
