import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FolderBlobs } from '../blobs/folder-blobs.ts'
import { TestServer, type TestServerOptions } from './server-test.ts'

/** Two servers on one database, each with its own host, that forward requests to each other and share their blobs. */
export class SharedServers {
  readonly first: TestServer
  readonly second: TestServer
  readonly #folder: string

  private constructor(first: TestServer, second: TestServer, folder: string) {
    this.first = first
    this.second = second
    this.#folder = folder
  }

  static async open(options: TestServerOptions = {}): Promise<SharedServers> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-shared-blobs-'))
    const openBlobs = () => FolderBlobs.openShared(folder)
    const first = await TestServer.open({ ...options, isShared: true, openBlobs })
    return new SharedServers(first, await first.sibling('second'), folder)
  }

  async close(): Promise<void> {
    await this.second.close()
    await this.first.close()
    await rm(this.#folder, { recursive: true, force: true })
  }
}
