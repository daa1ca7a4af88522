import { execFile } from 'node:child_process'
import { mkdtemp, rm, statfs, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { MachineFolders } from '../machine-folders.ts'
import type { MachineUser } from './machine-files.ts'

const run = promisify(execFile)

const mebibyte = 1024 ** 2
/** Chromium starts with some 40 MiB. */
const smallestDiskBytes = 128 * mebibyte
/** Of what is free, one session gets at most this share: it cannot take the disk away from all others. */
const largestShare = 1 / 4

/** Programs of the system's administration are not in the PATH of every user. */
const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

/*
 * The disk goes with its machine, so nothing has to survive a crash of the host: no journal, no barriers. Tables of
 * inodes are not written in advance, or an image would soon take a sixtieth of its size. Blocks of removed files stay
 * with the image: to give each back would let a machine keep threads of the kernel busy that nobody counts as its own.
 */
const makeOptions = ['-q', '-F', '-O', '^has_journal', '-m', '0', '-E', 'lazy_itable_init=1,nodiscard']
const mountOptions = 'loop,noatime,nodev,nosuid,noinit_itable,barrier=0'

/**
 * Makes the file that a machine will have its disk in. It takes space only for what is written: some 2 MiB at first.
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

/** Arguments image, folder, user; then the command that goes on. Its mounts are the machine's own and end with it. */
const mountDisk = `
mount -t ext4 -o ${mountOptions} "$1" "$2" && cd "$2" &&
mkdir -m 700 home run && chown "$3" home run && mkdir -m 1777 tmp tmp/.X11-unix && cd / && shift 3 && exec "$@"`

/** What a command is to be preceded by, within a mount namespace of its own, so that it finds the disk in its folder. */
export function withDisk({ diskImage, disk }: MachineFolders, { uid, gid }: MachineUser): readonly string[] {
  return ['/bin/sh', '-c', mountDisk, 'berth-machine', diskImage, disk, `${uid}:${gid}`]
}

/**
 * Says why machines cannot have disks in files on the disk of this folder, or nothing. It takes root, loop devices and
 * mkfs.ext4. A crash may leave something in the folder.
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
