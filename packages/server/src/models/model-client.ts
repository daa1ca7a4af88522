import { z } from 'zod'
import { readText } from '../outbound/read-text.ts'

export interface ModelConfig {
  /** The URL below which `/chat/completions` is. */
  readonly url: string
  readonly name: string
  readonly key: string | undefined
}

export interface ModelMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

const answerLimitMilliseconds = 60_000
const maxAnswerBytes = 256 * 1024
const Answer = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1) })

/** A client for models with an API like OpenAI's, which many programs and services implement. */
export class ModelClient {
  readonly #config: ModelConfig

  constructor(config: ModelConfig) {
    this.#config = config
  }

  /** Returns the next message of the model. */
  async ask(messages: readonly ModelMessage[], signal: AbortSignal): Promise<string> {
    const { url, name, key } = this.#config
    const response = await fetch(`${url.replace(/\/$/, '')}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ model: name, messages, response_format: { type: 'json_object' } }),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerLimitMilliseconds)]),
    })
    const text = await readText(response, maxAnswerBytes, "the model's server")
    if (!response.ok) throw new Error(`the model's server responds with ${response.status}`)
    return Answer.parse(JSON.parse(text)).choices[0]?.message.content ?? ''
  }
}
