import { EgressFailure } from '../../egress-failure.ts'

const beginning = /^HTTP\/1\.[01] 407\b/
const beginningBytes = 13

/**
 * Passes proxy responses through, unless one asks for credentials. Whoever configured the proxy has to provide them,
 * and a browser would ask its user instead. Throws an EgressFailure in that case.
 */
export function createChallengeFilter(): (chunk: Buffer) => Buffer {
  let held = Buffer.alloc(0)
  let isDecided = false
  return (chunk) => {
    if (isDecided) return chunk
    held = Buffer.concat([held, chunk])
    if (held.length < beginningBytes) return Buffer.alloc(0)
    isDecided = true
    if (beginning.test(held.toString('latin1', 0, beginningBytes))) throw new EgressFailure('proxy-rejected')
    return held
  }
}
