import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, posix, relative } from 'node:path'
import {
  downloadDirZip,
  getFileInfo,
  readFile as readSessionFile,
  uploadZip,
  writeFile,
} from '@berth/contract/agent/operations/fs-operations.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { Command } from 'commander'
import { ApiClient } from '../api/api-client.ts'
import { ApiFailure } from '../api/api-failure.ts'
import { withExample } from '../api/command-examples.ts'
import { commandGroup } from '../api/command-group.ts'
import { type ApiFlags, withApiFlags } from '../api/operation-commands.ts'
import { writeReply } from '../api/print-reply.ts'
import { fileOf } from '../api/request-body.ts'
import { printLine } from '../output.ts'
import { zipFolder } from './zip-folder.ts'

/** A path in a session: `id_or_name:/path`. */
interface SessionPath {
  readonly session: string
  readonly path: string
}

export function addCopyCommand(program: Command): void {
  const command = commandGroup(program, ['browsers'])
    .command('cp <source> <target>')
    .summary('copy a file or a folder to a session, or from one')
    .description(
      'A path in a session is <id_or_name>:/path. A folder arrives as a folder at the target, or as a ZIP archive where the target ends with .zip.',
    )
  withExample(command, 'browsers cp ./site shop:/tmp/site')
  withApiFlags(command).action(async (source: string, target: string, flags: ApiFlags) => {
    const [from, to] = [sessionPathOf(source), sessionPathOf(target)]
    const client = await ApiClient.open(flags)
    if (from && !to) await download(client, from, target)
    else if (to && !from) await upload(client, source, to)
    else throw new ApiFailure('one of the two paths must be in a session: <id_or_name>:/path', 'usage')
  })
}

function sessionPathOf(text: string): SessionPath | undefined {
  const [, session, path] = /^([^/:]+):(\/.*)$/.exec(text) ?? []
  return session && path ? { session, path } : undefined
}

async function upload(client: ApiClient, source: string, { session, path }: SessionPath): Promise<void> {
  const params = { id_or_name: session }
  const info = await stat(source).catch(() => undefined)
  if (!info) throw new ApiFailure(`${source} does not exist`, 'noInput')
  if (!info.isDirectory()) {
    const target = path.endsWith('/') ? posix.join(path, basename(source)) : path
    const mode = (info.mode & 0o777).toString(8)
    await client.send(writeFile as Endpoint, { params, query: { path: target, mode }, body: await fileOf(source) })
    printLine(`wrote ${session}:${target}`)
    return
  }
  const folder = await mkdtemp(join(tmpdir(), 'berth-cp-'))
  try {
    const archive = join(folder, 'folder.zip')
    await zipFolder(await filesBelow(source), archive)
    const form = new FormData()
    form.append('zip_file', await fileOf(archive))
    form.append('dest_path', path)
    await client.send(uploadZip as Endpoint, { params, body: form })
    printLine(`wrote ${session}:${path}`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function filesBelow(folder: string): Promise<readonly { readonly path: string; readonly name: string }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return { path, name: relative(folder, path) }
    })
}

async function download(client: ApiClient, { session, path }: SessionPath, target: string): Promise<void> {
  const params = { id_or_name: session }
  const info = await client.call<{ is_dir: boolean }>(getFileInfo as Endpoint, { params, query: { path } })
  const isFolder = await stat(target).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (info.is_dir && !target.endsWith('.zip')) {
    throw new ApiFailure('a folder of a session is downloaded as a ZIP archive: the target must end with .zip', 'usage')
  }
  const file = isFolder ? join(target, posix.basename(path)) : target
  const endpoint = (info.is_dir ? downloadDirZip : readSessionFile) as Endpoint
  const { body } = await client.send(endpoint, { params, query: { path } })
  if (body) await writeReply(body, file)
}
