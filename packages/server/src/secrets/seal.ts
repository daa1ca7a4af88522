import { createCipheriv, createDecipheriv, type DecipherGCM, randomBytes } from 'node:crypto'
import { Transform } from 'node:stream'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/*
 * A sealed text is nonce, ciphertext and tag. `context` says what the text is and whose: what was sealed for one place
 * does not open in another.
 */

export function seal(key: Uint8Array, text: Uint8Array, context: string): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** Throws when the text was sealed under another key or for another context, or was changed. */
export function unseal(key: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes)).setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
}

/** The same for texts of any length. */
export function sealing(key: Uint8Array, context: string): Transform {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context))
  let begun = false
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (!begun) this.push(nonce)
      begun = true
      done(null, cipher.update(chunk))
    },
    flush(done) {
      if (!begun) this.push(nonce)
      cipher.final()
      done(null, cipher.getAuthTag())
    },
  })
}

/**
 * Gives the text out as it comes, and fails at its end when it was changed: whoever reads may keep nothing of it
 * before the stream has ended well.
 */
export function unsealing(key: Uint8Array, context: string): Transform {
  let decipher: DecipherGCM | undefined
  /** The start until the nonce is whole, and from then on the bytes that may be the tag. */
  let held = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      held = Buffer.concat([held, chunk])
      if (!decipher) {
        if (held.length < nonceBytes) return done()
        decipher = createDecipheriv(algorithm, key, held.subarray(0, nonceBytes)).setAAD(Buffer.from(context))
        held = held.subarray(nonceBytes)
      }
      if (held.length <= tagBytes) return done()
      const text = decipher.update(held.subarray(0, -tagBytes))
      held = held.subarray(-tagBytes)
      done(null, text)
    },
    flush(done) {
      try {
        if (!decipher || held.length < tagBytes) throw new Error('a sealed text is too short')
        done(null, decipher.setAuthTag(held).final())
      } catch (error) {
        done(error as Error)
      }
    },
  })
}
