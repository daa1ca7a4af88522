import { read, writeSync } from 'node:fs'
import { gatewayAddresses, linkAddresses, machineAddresses } from '@berth/contract/agent/machine/machine-network.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'

/** Larger than every frame of the machine's interface. */
const frameBytes = 65_535 + 14

/** ARP: the gateway asks for the machine's address, and the kernel answers. */
const addressQuestion = Buffer.concat([
  ...[
    linkBytes('ff:ff:ff:ff:ff:ff'),
    linkBytes(linkAddresses.gateway),
    Buffer.from('0806' + '0001080006040001', 'hex'),
  ],
  ...[
    linkBytes(linkAddresses.gateway),
    ipBytes(gatewayAddresses.ipv4),
    Buffer.alloc(6),
    ipBytes(machineAddresses.ipv4),
  ],
])

/**
 * The agent's end of the machine's virtual Ethernet pair. Node.js has no packet sockets, but reads and writes them as
 * files: one read blocks a thread, and costs nothing while no frame arrives.
 */
export class FrameSocket {
  readonly #descriptor: number
  readonly #logger: Logger
  readonly #buffer = Buffer.allocUnsafeSlow(frameBytes)

  constructor(descriptor: number, logger: Logger) {
    this.#descriptor = descriptor
    this.#logger = logger
    // The thread waits for a frame, and Node.js waits for the thread.
    process.once('exit', () => this.send(addressQuestion))
  }

  /** Calls with each frame from a program. The buffer is valid during the call only. */
  listen(onFrame: (frame: Buffer) => void): void {
    read(this.#descriptor, this.#buffer, 0, frameBytes, null, (error, length) => {
      if (error) this.#logger.error({ err: error }, 'a frame could not be read')
      else onFrame(this.#buffer.subarray(0, length))
      this.listen(onFrame)
    })
  }

  /** A frame that does not fit is lost, as on any network: its receiver asks again. */
  send(frame: Buffer): void {
    try {
      writeSync(this.#descriptor, frame)
    } catch (error) {
      this.#logger.warn({ err: error }, 'a frame could not be sent')
    }
  }
}

function linkBytes(address: string): Buffer {
  return Buffer.from(address.replaceAll(':', ''), 'hex')
}

function ipBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}
