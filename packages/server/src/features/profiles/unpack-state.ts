import { pipeline, type Readable } from 'node:stream'
import { constants, createZstdDecompress } from 'node:zlib'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'

/** As much as a session takes in again. A small archive of somebody's making could else go on for ever. */
const maxUnpackedBytes = 4 * 1024 ** 3
/** Memory that an archive may ask for: 8 MiB. The agent's own asks for 2. */
const maxWindowLog = 23

/** Decompresses a saved state while it is read. */
export function unpackState(state: Readable): Readable {
  const decompress = createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: maxWindowLog } })
  const limited = limitBytes(maxUnpackedBytes, `a saved state unpacks to more than ${maxUnpackedBytes} bytes`)
  pipeline(state, decompress, limited, () => {}) // Its reader sees what fails.
  return limited
}
