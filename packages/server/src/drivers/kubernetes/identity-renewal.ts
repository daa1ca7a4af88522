import type { Logger } from '@berth/runtime/process/logger.ts'
import { identityLifetimeMilliseconds } from './certificates.ts'

interface IdentityRenewalOptions {
  readonly renew: () => Promise<void>
  readonly logger: Logger | undefined
}

/** Renews identities that are due, so often that a single failure, or a server that stops, does not matter. */
export class IdentityRenewal {
  readonly #timer: NodeJS.Timeout

  constructor({ renew, logger }: IdentityRenewalOptions) {
    const round = () => {
      renew().catch((error: Error) => logger?.warn({ reason: error.message }, 'could not renew identities of machines'))
    }
    this.#timer = setInterval(round, identityLifetimeMilliseconds / 12)
    this.#timer.unref()
    round()
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
