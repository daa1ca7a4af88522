import { type Runtime, runtimeOf } from '../machines/app-runtime.ts'
import type { InstallPlan, Manifests } from './install-step.ts'
import { nodeManifestNames, planNodeInstall } from './plan-node-install.ts'
import { planPythonInstall, pythonManifestNames } from './plan-python-install.ts'

/** The package managers of this host. */
export interface InstallTools {
  readonly npmVersion: string
  /** Absent if setup could not install it. */
  readonly uvVersion: string | undefined
}

const manifestNames: Readonly<Record<Runtime, readonly string[]>> = {
  node: nodeManifestNames,
  python: pythonManifestNames,
}

export function manifestNamesOf(entrypoint: string): readonly string[] {
  return manifestNames[runtimeOf(entrypoint)]
}

/** How to install the dependencies of an app. Undefined if it declares none. */
export function planInstall(entrypoint: string, manifests: Manifests, tools: InstallTools): InstallPlan | undefined {
  return runtimeOf(entrypoint) === 'python'
    ? planPythonInstall(manifests, tools.uvVersion)
    : planNodeInstall(manifests, tools.npmVersion)
}
