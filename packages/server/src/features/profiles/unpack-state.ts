import { pipeline, type Readable } from 'node:stream'
import { constants, createZstdDecompress } from 'node:zlib'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'

/** The limit of what a session accepts. A small malicious archive could otherwise expand without end. */
const maxUnpackedBytes = 4 * 1024 ** 3
/** Limits the memory that an archive may request to 8 MiB. The agent's archives request 2. */
const maxWindowLog = 23

/** Decompresses a saved state as it is read. */
export function unpackState(state: Readable): Readable {
  const decompress = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: maxWindowLog } })
  const limited = limitBytes(maxUnpackedBytes, `a saved state unpacks to more than ${maxUnpackedBytes} bytes`)
  pipeline(state, decompress, limited, () => {}) // The reader sees the failure.
  return limited
}
