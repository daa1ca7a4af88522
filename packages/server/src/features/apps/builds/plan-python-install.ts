import { inMachine } from '../machines/paths.ts'
import { type InstallPlan, type InstallStep, installKey, type Manifests, NotInstallable } from './install-step.ts'

export const pythonManifestNames = ['pyproject.toml', 'uv.lock', 'requirements.txt', 'uv.toml', '.python-version']

/** The system's Python runs apps, and uv installs for it. */
const env = {
  UV_PYTHON: inMachine.python,
  UV_PYTHON_DOWNLOADS: 'never',
  UV_PROJECT_ENVIRONMENT: inMachine.pythonEnvironment,
  UV_CACHE_DIR: '/tmp/uv-cache',
  // Otherwise modules would be compiled at each start of a machine.
  UV_COMPILE_BYTECODE: '1',
  UV_NO_PROGRESS: '1',
  UV_SYSTEM_CERTS: '1',
}

/** Uses a `pyproject.toml` with a project, otherwise a `requirements.txt`. */
export function planPythonInstall(manifests: Manifests, uvVersion: string | undefined): InstallPlan | undefined {
  const project = manifests['pyproject.toml']?.toString() ?? ''
  const requirements = manifests['requirements.txt']?.toString()
  const hasProject = /^\s*\[\s*project\s*\]/m.test(project)
  if (!hasProject && requirements === undefined) return undefined
  if (uvVersion === undefined) {
    throw new NotInstallable('Python apps cannot be installed: this host has no uv. ./berth setup installs it.')
  }
  const plan = hasProject ? ofProject(project, manifests['uv.lock']?.toString()) : ofRequirements(requirements ?? '')
  const key = plan.isSame ? installKey([uvVersion, process.arch], manifests) : undefined
  return { steps: plan.steps, key }
}

interface Steps {
  readonly steps: readonly InstallStep[]
  /** Whether the manifests alone determine what is installed. */
  readonly isSame: boolean
}

function ofProject(project: string, lock: string | undefined): Steps {
  // Unchanged: `--locked` would reject a lock file that was created with another index than the operator's.
  const args = ['sync', '--no-dev', ...(lock === undefined ? [] : ['--frozen'])]
  // A package that is built from the source of the app is installed too.
  const isBuilt = /^\s*\[\s*build-system\s*\]/m.test(project)
  const hasFolders = lock !== undefined && /source = \{ (editable|directory|path) = /.test(lock)
  return { steps: [uvStep('uv sync', args)], isSame: lock !== undefined && !isBuilt && !hasFolders }
}

function ofRequirements(requirements: string): Steps {
  const lines = requirements
    .replaceAll(/\\\r?\n/g, ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  // With hashes, every package is listed, so the result is always the same.
  const isSame = lines.length > 0 && lines.every((line) => /^[^-\s].*--hash=/.test(line))
  return {
    steps: [
      uvStep('uv venv', ['venv', '--quiet', '--clear', inMachine.pythonEnvironment]),
      uvStep('uv pip install', [
        ...['pip', 'install', '--python', `${inMachine.pythonEnvironment}/bin/python`, '-r', 'requirements.txt'],
        ...(isSame ? ['--require-hashes'] : []),
      ]),
    ],
    isSame,
  }
}

function uvStep(title: string, args: readonly string[]): InstallStep {
  return { title, command: inMachine.uv, args, env }
}
