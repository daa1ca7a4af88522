import { createCipheriv, createDecipheriv, type DecipherGCM, randomBytes } from 'node:crypto'
import { Transform } from 'node:stream'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/*
 * A sealed text consists of nonce, ciphertext and tag. `context` states what the text is and for what: a text that was
 * sealed for one place cannot be unsealed in another.
 */

export function seal(key: Uint8Array, text: Uint8Array, context: string): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** Throws when the text was sealed with another key or context, or was modified. */
export function unseal(key: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  const bytes = Buffer.from(sealed)
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes)).setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
}

/** Like `seal`, for texts of any length. */
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
 * Emits the text as it is decrypted, and fails at the end when it was modified. Readers must discard the output unless
 * the stream ends without an error.
 */
export function unsealing(key: Uint8Array, context: string): Transform {
  let decipher: DecipherGCM | undefined
  /** First the beginning, until the nonce is complete. Then the bytes that may be the tag. */
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
