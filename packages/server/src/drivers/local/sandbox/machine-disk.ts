import { execFile } from 'node:child_process'
import { mkdtemp, rm, statfs, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { MachineFolders } from '../machine-folders.ts'
import type { MachineUser } from './machine-files.ts'

const run = promisify(execFile)

const mebibyte = 1024 ** 2
/** Chromium needs about 40 MiB to start. */
const smallestDiskBytes = 128 * mebibyte
/** The largest share of the free space for one session, so that it cannot take the disk away from others. */
const largestShare = 1 / 4

/** Administration programs are not in the PATH of every user. */
const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

/*
 * The disk is deleted with its machine, so nothing has to survive a crash of the host: no journal, no barriers. Inode
 * tables are not initialised in advance, because an image would soon take a sixtieth of its size. Blocks of deleted
 * files stay allocated in the image: with discards, a machine could keep kernel threads busy that are not counted for
 * it.
 */
const makeOptions = ['-q', '-F', '-O', '^has_journal', '-m', '0', '-E', 'lazy_itable_init=1,nodiscard']
const mountOptions = 'loop,noatime,nodev,nosuid,noinit_itable,barrier=0'

/**
 * Creates the image file for a machine's disk. The file only takes space for what is written, initially about 2 MiB.
 * Resolves with its size.
 */
export async function makeDiskImage(image: string, wantedBytes: number, reservedBytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(join(image, '..'))
  const bytes = diskSize(wantedBytes, bavail * bsize - reservedBytes)
  await writeFile(image, '', { mode: 0o600 })
  await truncate(image, bytes)
  await run('mkfs.ext4', [...makeOptions, image], { env: environment })
  return bytes
}

export function diskSize(wantedBytes: number, freeBytes: number): number {
  const size = Math.min(wantedBytes, Math.max(smallestDiskBytes, freeBytes * largestShare))
  return Math.floor(size / mebibyte) * mebibyte
}

/** Arguments: image, folder, user, and then the command to run. The mounts belong to the machine and end with it. */
const mountDisk = `
mount -t ext4 -o ${mountOptions} "$1" "$2" && cd "$2" &&
mkdir -m 700 home run && chown "$3" home run && mkdir -m 1777 tmp tmp/.X11-unix && cd / && shift 3 && exec "$@"`

/** The prefix for a command in a separate mount namespace that mounts the disk at its folder. */
export function withDisk({ diskImage, disk }: MachineFolders, { uid, gid }: MachineUser): readonly string[] {
  return ['/bin/sh', '-c', mountDisk, 'berth-machine', diskImage, disk, `${uid}:${gid}`]
}

/**
 * Describes why machines cannot have disk images in this folder, if so. They need root, loop devices and mkfs.ext4. A
 * crash may leave a file in the folder.
 */
export async function findDiskImageProblem(folder: string): Promise<string | undefined> {
  if (process.geteuid?.() !== 0) return 'only root can mount a disk from a file'
  const trial = await mkdtemp(join(folder, 'trial-'))
  const image = join(trial, 'image')
  try {
    await makeDiskImage(image, smallestDiskBytes, 0)
    await run('unshare', ['--mount', '--', 'mount', '-t', 'ext4', '-o', mountOptions, image, trial], {
      env: environment,
    })
    return undefined
  } catch (error) {
    return (error as Error).message.trim().split('\n').at(-1)
  } finally {
    await rm(trial, { recursive: true })
  }
}
