import { mkdir, readdir, readFile, readlink, stat, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServiceUser } from '../../../host/service-user.ts'

/*
 * When berth is root, each machine runs as a user of the host that no other running machine has. A claim is a link in a
 * folder that all berths of this host share: its name is the user, its target the machine's runtime folder. A link is
 * created with its target in one step, so a claim never exists without its owner.
 */
const claimsFolder = '/run/berth/users'
const usersPerHost = 65_536

/** Above the users that systemd, containers and directory services assign. */
const firstUser = 1_900_000_000
/** In a container with users up to 65,535: above those of people, below those of systemd. */
const firstUserOfContainer = 30_000
const usersPerContainer = 20_000

/** Claims the smallest free user for the machine, whose runtime folder exists. */
export async function claimUser(machineRuntimeFolder: string): Promise<ServiceUser> {
  await mkdir(claimsFolder, { recursive: true, mode: 0o700 })
  const range = userRange(await readFile('/proc/self/uid_map', 'utf8'))
  for (;;) {
    const taken = new Set(await readdir(claimsFolder))
    const uid = smallestFree(range, taken)
    if (uid === undefined) throw new Error(`all ${range.count} users for machines are taken`)
    if (await claim(uid, machineRuntimeFolder)) return { uid, gid: uid }
  }
}

/** Releases the machine's claim, if it has one. No process of that user may be left. */
export async function releaseUser(machineRuntimeFolder: string): Promise<void> {
  for (const [link, owner] of await listClaims()) {
    if (owner === machineRuntimeFolder) await unlinkClaim(link)
  }
}

/** Releases the claims of machines whose folders were removed manually. */
export async function releaseOrphanedUsers(): Promise<void> {
  for (const [link, owner] of await listClaims()) {
    const exists = await stat(owner).then(
      () => true,
      () => false,
    )
    if (!exists) await unlinkClaim(link)
  }
}

export interface UserRange {
  readonly first: number
  readonly count: number
}

/** Parses `/proc/self/uid_map`: lines with the first user inside, the first user outside and the count. */
export function userRange(uidMap: string): UserRange {
  const lines = uidMap
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const covers = ([first = 0, , count = 0]: number[]) => first <= firstUser && firstUser + usersPerHost <= first + count
  return lines.some(covers)
    ? { first: firstUser, count: usersPerHost }
    : { first: firstUserOfContainer, count: usersPerContainer }
}

function smallestFree({ first, count }: UserRange, taken: ReadonlySet<string>): number | undefined {
  for (let uid = first; uid < first + count; uid++) {
    if (!taken.has(String(uid))) return uid
  }
  return undefined
}

/** Of two concurrent claims of a user, only one can create the link. */
async function claim(uid: number, owner: string): Promise<boolean> {
  try {
    await symlink(owner, join(claimsFolder, String(uid)))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

async function listClaims(): Promise<readonly (readonly [link: string, owner: string])[]> {
  const names = await readdir(claimsFolder).catch(() => [])
  const claims = names.map(async (name) => {
    const link = join(claimsFolder, name)
    // Another berth may remove its link meanwhile.
    const owner = await readlink(link).catch(() => undefined)
    return owner === undefined ? [] : [[link, owner] as const]
  })
  return (await Promise.all(claims)).flat()
}

async function unlinkClaim(link: string): Promise<void> {
  await unlink(link).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
}
