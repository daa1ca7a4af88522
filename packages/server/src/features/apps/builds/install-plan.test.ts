import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstallTools, planInstall } from './install-plan.ts'
import type { Manifests } from './install-step.ts'
import { indexesIn, registriesIn } from './registry-settings.ts'

const tools: InstallTools = { npmVersion: '11', uvVersion: '0.1' }
const text = (content: string | object) => Buffer.from(typeof content === 'string' ? content : JSON.stringify(content))
const plan = (entrypoint: string, files: Readonly<Record<string, string | object>>, using = tools) => {
  const manifests: Manifests = Object.fromEntries(Object.entries(files).map(([name, it]) => [name, text(it)]))
  return planInstall(entrypoint, manifests, using)
}
const titles = (entrypoint: string, files: Readonly<Record<string, string | object>>) =>
  plan(entrypoint, files)?.steps.map(({ title }) => title)

const pnpmLock = "lockfileVersion: '9.0'\n"
const project = '[project]\nname = "a"\n'
const hashed = 'kernel==0.1 \\\n    --hash=sha256:00\n# a comment\n'

const plans: readonly (readonly [
  what: string,
  entrypoint: string,
  files: Readonly<Record<string, string | object>>,
  steps: readonly string[] | undefined,
  isKept: boolean,
])[] = [
  ['no manifest', 'index.ts', {}, undefined, false],
  ['no lock file', 'index.ts', { 'package.json': {} }, ['npm install'], false],
  ['the lock of npm', 'index.ts', { 'package.json': {}, 'package-lock.json': '{}' }, ['npm ci'], true],
  [
    'scripts of the app itself',
    'index.ts',
    { 'package.json': { scripts: { postinstall: 'node x.js' } }, 'package-lock.json': '{}' },
    ['npm ci'],
    false,
  ],
  ['workspaces', 'index.ts', { 'package.json': { workspaces: ['a'] }, 'package-lock.json': '{}' }, ['npm ci'], false],
  [
    'the lock of pnpm',
    'index.ts',
    { 'package.json': {}, 'pnpm-lock.yaml': pnpmLock },
    ['pnpm@10', 'pnpm install'],
    true,
  ],
  [
    'an older lock of pnpm',
    'index.ts',
    { 'package.json': {}, 'pnpm-lock.yaml': "lockfileVersion: '6.0'\n" },
    ['pnpm@8', 'pnpm install'],
    true,
  ],
  [
    'the version of pnpm that the app names',
    'index.ts',
    { 'package.json': { packageManager: 'pnpm@10.1.2+sha512.00' }, 'pnpm-lock.yaml': pnpmLock },
    ['pnpm@10.1.2', 'pnpm install'],
    true,
  ],
  [
    'several locks, of which the app names one',
    'index.ts',
    { 'package.json': { packageManager: 'yarn@4.1.0' }, 'package-lock.json': '{}', 'yarn.lock': '__metadata:\n' },
    ['@yarnpkg/cli-dist@4.1.0', 'yarn install'],
    true,
  ],
  [
    'the lock of bun',
    'index.ts',
    { 'package.json': {}, 'bun.lock': '{}' },
    [`@oven/bun-linux-${process.arch === 'x64' ? 'x64-baseline' : 'aarch64'}@1`, 'bun install'],
    true,
  ],
  [
    'a lock of pnpm with a folder of the app',
    'index.ts',
    { 'package.json': {}, 'pnpm-lock.yaml': `${pnpmLock}resolution: {directory: sdk, type: directory}` },
    ['pnpm@10', 'pnpm install'],
    false,
  ],
  ['the lock of yarn 1', 'index.ts', { 'package.json': {}, 'yarn.lock': '' }, ['yarn@1', 'yarn install'], true],
  ['requirements', 'main.py', { 'requirements.txt': 'kernel\n' }, ['uv venv', 'uv pip install'], false],
  ['requirements with hashes', 'main.py', { 'requirements.txt': hashed }, ['uv venv', 'uv pip install'], true],
  [
    'requirements of another file',
    'main.py',
    { 'requirements.txt': `-r other.txt --hash=\n${hashed}` },
    ['uv venv', 'uv pip install'],
    false,
  ],
  ['a project', 'main.py', { 'pyproject.toml': project, 'requirements.txt': '' }, ['uv sync'], false],
  ['a project with its lock', 'main.py', { 'pyproject.toml': project, 'uv.lock': '' }, ['uv sync'], true],
  [
    'a project that is built itself',
    'main.py',
    { 'pyproject.toml': `${project}[build-system]\nrequires = []\n`, 'uv.lock': '' },
    ['uv sync'],
    false,
  ],
  [
    'a project that needs another folder',
    'main.py',
    { 'pyproject.toml': project, 'uv.lock': 'source = { directory = "x" }' },
    ['uv sync'],
    false,
  ],
  ['settings of tools alone', 'main.py', { 'pyproject.toml': '[tool.ruff]\n' }, undefined, false],
]
for (const [what, entrypoint, files, steps, isKept] of plans) {
  test(`plans for ${what}: ${steps?.join(', ') ?? 'nothing'}`, () => {
    assert.deepEqual(titles(entrypoint, files), steps)
    assert.equal(plan(entrypoint, files)?.key !== undefined, isKept)
  })
}

test('the installation is equal only for equal files and tools', () => {
  const keyOf = (files: Readonly<Record<string, string | object>>, using = tools) =>
    plan('index.ts', { 'package.json': {}, 'package-lock.json': '{}', ...files }, using)?.key

  assert.equal(keyOf({}), keyOf({}))
  assert.notEqual(keyOf({}), keyOf({ 'package.json': { name: 'b' } }))
  assert.notEqual(keyOf({}), keyOf({ '.npmrc': 'registry=http://other/' }))
  assert.notEqual(keyOf({}), keyOf({}, { ...tools, npmVersion: '12' }))
})

const refused: readonly (readonly [
  entrypoint: string,
  files: Readonly<Record<string, string | object>>,
  rule: RegExp,
])[] = [
  ['index.ts', { 'package.json': '{' }, /^package.json: is not JSON/],
  ['index.ts', { 'package.json': {}, 'pnpm-lock.yaml': 'lockfileVersion: 5.4' }, /^pnpm-lock.yaml: lockfileVersion/],
  [
    'index.ts',
    { 'package.json': { packageManager: 'pnpm@latest; rm' }, 'pnpm-lock.yaml': pnpmLock },
    /^package.json: packageManager/,
  ],
]
for (const [entrypoint, files, rule] of refused) {
  test(`refuses what it cannot install: ${rule.source}`, () => {
    assert.throws(() => plan(entrypoint, files), { message: rule })
  })
}

test('rejects Python without uv', () => {
  const without = { ...tools, uvVersion: undefined }

  assert.throws(() => plan('main.py', { 'requirements.txt': '' }, without), { message: /no uv/ })
})

test('machines learn the addresses of registries, and no credentials', () => {
  assert.deepEqual(
    registriesIn({
      registry: 'http://user:secret@127.0.0.1:4873/',
      '@corp:registry': 'https://npm.corp.example/',
      '//npm.corp.example/:_authToken': '(protected)',
      cache: '/root/.npm',
    }),
    {
      npm_config_registry: 'http://host.berth.internal:4873/',
      'npm_config_@corp:registry': 'https://npm.corp.example/',
      YARN_NPM_REGISTRY_SERVER: 'http://host.berth.internal:4873/',
      YARN_UNSAFE_HTTP_WHITELIST: 'host.berth.internal',
    },
  )
})

test('machines learn the addresses of package indexes, and the environment takes precedence over files', () => {
  const config = [
    ":env:.index-url='http://user:secret@127.0.0.1:3141/simple'",
    "global.cert='/etc/ssl/certs/ca-certificates.crt'",
    "global.index-url='https://other.example/simple'",
    "global.extra-index-url='https://a:b@one.example/simple\\nhttps://two.example/simple'",
  ]

  assert.deepEqual(indexesIn(config.join('\n')), {
    UV_DEFAULT_INDEX: 'http://host.berth.internal:3141/simple',
    UV_INDEX: 'https://one.example/simple https://two.example/simple',
  })
  assert.deepEqual(indexesIn(''), {})
})
