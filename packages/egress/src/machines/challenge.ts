import { EgressFailure } from '../egress-failure.ts'

const beginning = /^HTTP\/1\.[01] 407\b/
const beginningBytes = 13

/**
 * Passes on what a proxy answers, unless it asks for credentials: that is the business of whoever set the proxy up, and a
 * browser would ask its user. Throws an EgressFailure then.
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
