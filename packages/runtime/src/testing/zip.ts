import { crc32, deflateRawSync } from 'node:zlib'

/** A member of an archive as its writer declares it, correctly or not. */
export interface ZipMember {
  readonly name: string
  readonly content?: string | Uint8Array
  /** The Unix mode; `link` for a symbolic link. */
  readonly mode?: number
  readonly claimedSize?: number
  readonly claimedSum?: number
  readonly isEncrypted?: boolean
}

export const linkMode = 0o120777

/** Writes an archive by hand, because libraries refuse to write invalid ones. */
export function zip(...members: readonly ZipMember[]): Buffer {
  const locals: Buffer[] = []
  const heads: Buffer[] = []
  let offset = 0
  for (const member of members) {
    const name = Buffer.from(member.name)
    const content = Buffer.from(member.content ?? '')
    const packed = deflateRawSync(content)
    const flags = 0x800 | (member.isEncrypted ? 1 : 0)
    const sum = member.claimedSum ?? crc32(content)
    const size = member.claimedSize ?? content.length
    const shared = [
      u16(20),
      u16(flags),
      u16(8),
      u16(0),
      u16(0x21),
      u32(sum),
      u32(packed.length),
      u32(size),
      u16(name.length),
      u16(0),
    ]
    const local = Buffer.concat([u32(0x04034b50), ...shared, name, packed])
    const attributes = ((member.mode ?? 0o100644) << 16) >>> 0
    const tail = [u16(0), u16(0), u16(0), u32(attributes), u32(offset), name]
    heads.push(Buffer.concat([u32(0x02014b50), u16((3 << 8) | 20), ...shared, ...tail]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(heads)
  const counts = [u16(members.length), u16(members.length), u32(directory.length), u32(offset), u16(0)]
  return Buffer.concat([...locals, directory, u32(0x06054b50), u16(0), u16(0), ...counts])
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
