import { RepositorySource } from '@berth/contract/apps/app.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { FieldPath } from '@berth/runtime/http/multipart.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { z } from 'zod'

const Parts = z.object({ source: RepositorySource })

/** The `source` of a deployment: one part of JSON, or one part per field such as `source[auth][token]`. */
export class RepositoryParts {
  #whole: unknown
  readonly #fields = new Map<string, string>()

  add(path: FieldPath, text: string): void {
    const name = path.slice(1).join('.')
    // Clients send an empty text for a field that is not set.
    if (text === '') return
    if (this.#whole !== undefined || this.#fields.has(name) || (name === '' && this.#fields.size > 0)) {
      throw new BerthError('bad_request', { reason: 'source: must be given once.' })
    }
    if (name === '') this.#whole = parsed(text)
    else this.#fields.set(name, text)
  }

  /** Undefined if there is none. */
  read(): RepositorySource | undefined {
    if (this.#whole === undefined && this.#fields.size === 0) return undefined
    return validate(Parts, { source: this.#whole ?? this.#nested() }, 'body').source
  }

  #nested(): unknown {
    const nested: Record<string, unknown> = {}
    const auth: Record<string, unknown> = {}
    for (const [name, text] of this.#fields) {
      const [field = '', inner] = name.split('.', 2)
      if (field === 'auth' && inner !== undefined) auth[inner] = text
      else nested[name] = text
    }
    return { ...nested, ...(Object.keys(auth).length > 0 && { auth }) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new BerthError('bad_request', { reason: 'source: must be JSON.' }, { cause })
  }
}
