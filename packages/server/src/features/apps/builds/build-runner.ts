import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { compose } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { maxDeploymentBytes } from '@berth/contract/apps/app.ts'
import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'
import npmPackage from 'npm/package.json' with { type: 'json' }
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { TemporaryFolders } from '../../../blobs/temporary-folders.ts'
import { uvProgram, uvVersion } from '../../../host-checks/uv.ts'
import type { BuildWait } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import { type AppBlobs, keepSource } from '../app-blobs.ts'
import type { AppEnvironment } from '../app-environment.ts'
import { checkSource } from '../deployments/check-source.ts'
import type { DeploymentStore, StoredDeployment } from '../deployments/deployment-store.ts'
import type { AppLogs } from '../logs/app-logs.ts'
import type { AppMachine } from '../machines/app-machine.ts'
import { type AppCode, AppFailure, AppProcess, type RegisteredApps } from '../machines/app-process.ts'
import { runtimeOf, runtimePlaces, startsWithoutFiles } from '../machines/app-runtime.ts'
import { inMachine } from '../machines/paths.ts'
import { runProgram } from '../machines/run-program.ts'
import type { PreparedMachine } from '../machines/warm-machines.ts'
import { manifestNamesOf, planInstall } from './install-plan.ts'
import { type Manifests, NotInstallable } from './install-step.ts'
import type { RegistrySettings } from './registry-settings.ts'
import { packRepository, tokenContext } from './repository.ts'
import { RoomElsewhere, startBuildMachine } from './start-build-machine.ts'

const maxAttempts = 3
const buildLimitMilliseconds = 10 * 60_000
const prepareLimitMilliseconds = 2 * 60_000
const pollMilliseconds = 2_000
const maxManifestBytes = 32 * 1024 ** 2
const maxDependencyBytes = 1024 ** 3
const largeRepository = `source: the archive of the repository has more than ${maxDeploymentBytes} bytes.`
const tooLarge = `What is installed has more than ${maxDependencyBytes} bytes.`

interface BuildRunnerOptions {
  readonly deployments: DeploymentStore
  readonly blobs: AppBlobs
  readonly secrets: ProjectSecrets
  readonly temporaryFolders: TemporaryFolders
  readonly environment: AppEnvironment
  readonly logs: AppLogs
  readonly registries: RegistrySettings
  readonly startMachine: (signal: AbortSignal) => Promise<AppMachine>
  readonly findRoom: (except: string) => Promise<string | undefined>
  readonly jobs: JobQueue
  readonly serverId: string
  /** Ends the machine of a deployment that serves no more apps, when it is idle. */
  readonly retire: (id: DeploymentId) => void
  readonly clock: Clock
  readonly logger: Logger
}

/** Builds deployments, each in a separate machine. A build of a killed server is restarted. */
export class BuildRunner {
  readonly #options: BuildRunnerOptions

  constructor(options: BuildRunnerOptions) {
    this.#options = options
  }

  /** `wait` is set for a build that another server had no room for. */
  async run(id: DeploymentId, jobSignal: AbortSignal, wait?: BuildWait): Promise<void> {
    const { deployments, logs, jobs, clock } = this.#options
    const deployment = await deployments.claim(id, clock.now())
    if (!deployment) return
    logs.notify(id)
    if (deployment.attempts > maxAttempts) return this.#fail(id, 'The build was interrupted several times.')
    const limit = AbortSignal.timeout(buildLimitMilliseconds)
    const gone = new AbortController()
    const watch = setInterval(() => void this.#look(id, gone), pollMilliseconds)
    try {
      await this.#build(deployment, wait, AbortSignal.any([jobSignal, limit, gone.signal]))
    } catch (error) {
      if (gone.signal.aborted) return
      if (jobSignal.aborted) throw error
      if (error instanceof RoomElsewhere) {
        await logs.flush()
        return await deployments.handOn(id, error.wait, jobs)
      }
      await this.#fail(
        id,
        limit.aborted
          ? `The build took longer than ${buildLimitMilliseconds / 60_000} minutes.`
          : this.#reasonOf(error, id),
      )
    } finally {
      clearInterval(watch)
    }
  }

  /** A deployment that is deleted meanwhile needs no build. */
  async #look(id: DeploymentId, gone: AbortController): Promise<void> {
    if (!(await this.#options.deployments.isBuilding(id).catch(() => true))) gone.abort()
  }

  async #build(deployment: StoredDeployment, wait: BuildWait | undefined, signal: AbortSignal): Promise<void> {
    const { deployments, logs, clock, retire, startMachine, serverId } = this.#options
    const { id, version } = deployment
    const log = logs.writer(id, null)
    const findRoom = () => this.#options.findRoom(serverId)
    const machine = await startBuildMachine({ startMachine, findRoom, serverId, clock, log, signal }, wait)
    let apps: RegisteredApps
    try {
      const blob = await this.#fetchSource(machine, deployment, log, signal)
      await this.#unpackSource(machine, { ...deployment, source_blob: blob }, signal)
      await this.#install(machine, deployment, log, signal)
      apps = await this.#load(machine, deployment, log, signal)
    } catch (error) {
      if (!isOwners(error) || (await machine.countMemoryKills()) === 0) throw error
      throw new NotInstallable('The build ran out of memory.', { cause: error })
    } finally {
      await machine.stop()
    }
    await logs.flush()
    const { published, taken, stopped } = await deployments.publish(deployment, apps, clock.now())
    for (const other of stopped) {
      logs.notify(other)
      retire(other)
    }
    if (taken !== undefined) {
      await this.#fail(id, `${taken} has a version ${version} already. Deploy with force to replace it.`)
    } else if (published) logs.notify(id)
  }

  /** Starts a machine with everything that the invocations of a deployment need. */
  async prepare(id: DeploymentId): Promise<PreparedMachine> {
    const { deployments, environment } = this.#options
    const deployment = await deployments.get(id)
    const signal = AbortSignal.timeout(prepareLimitMilliseconds)
    const { entrypoint } = deployment
    const code = environment.of(deployment).then((variables) => ({ entrypoint, environment: variables }))
    code.catch(() => {}) // Awaited when the machine has started.
    const machine = await this.#options.startMachine(signal)
    try {
      const [waiting] = await settleAll([
        code.then((known) => this.#spawnEarly(machine, known, signal)),
        this.#unpackSource(machine, deployment, signal),
        this.#writeDependencies(machine, deployment, signal),
      ])
      await this.#unpackDependencies(machine, deployment, signal)
      return { machine, code: await code, waiting }
    } catch (error) {
      await machine.stop()
      throw error
    }
  }

  /** Fetches the source from its repository. Returns the stored source if an earlier attempt has fetched it. */
  async #fetchSource(
    machine: AppMachine,
    { id, project_id: projectId, entrypoint, ...source }: StoredDeployment,
    log: OnLine,
    signal: AbortSignal,
  ): Promise<string> {
    if (source.source_blob !== null) return source.source_blob
    const { deployments, blobs, secrets, temporaryFolders } = this.#options
    const { source_url: url, source_ref: ref, source_path: path, sealed_token: sealed } = source
    if (url === null || ref === null) throw new Error('a deployment has no source')
    log(`Fetching ${url} at ${ref}`)
    const token = sealed ? await secrets.unseal(projectId, sealed, tokenContext(id)) : undefined
    const packed = await packRepository(machine, { url, ref, path: path ?? undefined, token }, log, signal)
    await using folder = await temporaryFolders.make()
    const file = join(folder.path, 'source.zip')
    const content = await machine.operations.readFile(packed, signal)
    await pipeline(content, limitBytes(maxDeploymentBytes, largeRepository), createWriteStream(file), { signal })
    await checkSource(file, entrypoint, { entrypoint: 'source.entrypoint', archive: 'source' })
    const kept = await keepSource(blobs, projectId, file)
    await deployments.setSource(id, kept)
    return kept.blob
  }

  /** Starts the process for the first invocation early, if it does not need the files yet. */
  async #spawnEarly(machine: AppMachine, code: AppCode, signal: AbortSignal): Promise<AppProcess | undefined> {
    if (!startsWithoutFiles(code.entrypoint, code.environment)) return undefined
    return AppProcess.spawn(machine.operations, code, signal)
  }

  /** Unpacks the source where the machine expects its app. */
  async #unpackSource(
    machine: AppMachine,
    { project_id: projectId, source_blob: blob }: Pick<StoredDeployment, 'project_id' | 'source_blob'>,
    signal: AbortSignal,
  ): Promise<void> {
    if (blob === null) throw new Error('a deployment has no source')
    const source = await this.#options.blobs.read(projectId, blob)
    await machine.operations.unpack(source, inMachine.app, signal)
  }

  async #writeDependencies(
    { operations }: AppMachine,
    { project_id: projectId, dependencies_blob: blob }: StoredDeployment,
    signal: AbortSignal,
  ): Promise<void> {
    if (blob === null) return
    await operations.writeFile(inMachine.dependencies, await this.#options.blobs.read(projectId, blob), signal)
  }

  /** Unpacked over the source, which may contain some dependencies itself. */
  async #unpackDependencies(
    { operations }: AppMachine,
    { dependencies_blob: blob, entrypoint }: StoredDeployment,
    signal: AbortSignal,
  ): Promise<void> {
    if (blob === null) return
    const { folder } = runtimePlaces[runtimeOf(entrypoint)]
    const unpack = `mkdir -p ${folder} && tar -xzf ${inMachine.dependencies} -C ${folder} && rm ${inMachine.dependencies}`
    const exitCode = await runProgram(operations, { command: '/bin/sh', args: ['-c', unpack] }, () => {}, signal)
    if (exitCode !== 0) throw new Error('the dependencies of an app could not be unpacked')
  }

  async #install(machine: AppMachine, deployment: StoredDeployment, log: OnLine, signal: AbortSignal): Promise<void> {
    const { deployments, registries } = this.#options
    const { id, project_id: projectId, entrypoint } = deployment
    const tools = { npmVersion: npmPackage.version, uvVersion: existsSync(uvProgram) ? uvVersion : undefined }
    const plan = planInstall(entrypoint, await readManifests(machine, entrypoint, signal), tools)
    if (!plan) return
    const known = plan.key && (await deployments.findDependencies(projectId, plan.key))
    if (known) {
      log('The dependencies are those of an earlier deployment.')
      await deployments.setDependencies(id, known, plan.key)
      const kept = { ...deployment, dependencies_blob: known }
      await this.#writeDependencies(machine, kept, signal)
      return this.#unpackDependencies(machine, kept, signal)
    }
    const path = { PATH: `${inMachine.programs}:/usr/local/bin:/usr/bin:/bin` }
    const addresses = await registries.of(runtimeOf(entrypoint))
    for (const { title, command, args, env } of plan.steps) {
      log(`Installing dependencies: ${title}`)
      const request = { command, args, cwd: inMachine.app, env: { ...path, ...addresses, ...env } }
      const exitCode = await runProgram(machine.operations, request, log, signal)
      if (exitCode === 0) continue
      throw new NotInstallable(`The dependencies could not be installed: ${title} failed with exit code ${exitCode}.`)
    }
    await this.#keepDependencies(machine, deployment, plan.key, signal)
  }

  async #keepDependencies(
    { operations }: AppMachine,
    { id, project_id: projectId, entrypoint }: StoredDeployment,
    key: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { blobs, deployments } = this.#options
    const { folder, list } = runtimePlaces[runtimeOf(entrypoint)]
    const pack = `${list} | tar --null -I 'gzip -1' -cf ${inMachine.dependencies} -T -`
    const exitCode = await runProgram(
      operations,
      { command: '/bin/sh', args: ['-c', pack], cwd: folder },
      () => {},
      signal,
    )
    if (exitCode !== 0)
      throw new NotInstallable('The installed dependencies leave too little space on the disk to store them.')
    const packed = await operations.readFile(inMachine.dependencies, signal)
    const limited = compose(packed, limitBytes(maxDependencyBytes, tooLarge))
    const blob = await blobs.write('dependencies', projectId, limited)
    await deployments.setDependencies(id, blob, key)
  }

  async #load(
    machine: AppMachine,
    deployment: StoredDeployment,
    log: OnLine,
    signal: AbortSignal,
  ): Promise<RegisteredApps> {
    const environment = await this.#options.environment.of(deployment)
    const code = { entrypoint: deployment.entrypoint, environment }
    const process = await AppProcess.spawn(machine.operations, code, signal)
    const apps = await process.load(log, signal)
    await process.kill()
    return apps
  }

  async #fail(id: DeploymentId, reason: string): Promise<void> {
    const { deployments, logs, clock } = this.#options
    await logs.flush()
    await deployments.fail(id, reason, clock.now())
    logs.notify(id)
  }

  /** The reason in terms that its owner may see. */
  #reasonOf(error: unknown, deploymentId: DeploymentId): string {
    if (isOwners(error) || error instanceof AgentRefusal || error instanceof BerthError) return error.message
    if (error instanceof Error && [tooLarge, largeRepository].includes(error.message)) return error.message
    this.#options.logger.error({ err: error, deploymentId }, 'a deployment could not be built')
    return 'The build failed because of a problem of this service.'
  }
}

type OnLine = (line: string) => void

/** Whether the code of the app or of its dependencies caused the error. */
function isOwners(error: unknown): error is AppFailure | NotInstallable {
  return error instanceof AppFailure || error instanceof NotInstallable
}

async function readManifests({ operations }: AppMachine, entrypoint: string, signal: AbortSignal): Promise<Manifests> {
  const found: Record<string, Buffer> = {}
  for (const name of manifestNamesOf(entrypoint)) {
    const content = await operations.readFile(`${inMachine.app}/${name}`, signal).catch((error: unknown) => {
      if (error instanceof AgentRefusal && error.status === 404) return undefined
      throw error
    })
    if (content) found[name] = await readAll(content, name)
  }
  return found
}

async function readAll(content: AsyncIterable<Buffer>, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > maxManifestBytes) throw new NotInstallable(`${name}: has more than ${maxManifestBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
