import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/**
 * A server with OpenAI's chat completions API in place of a model. It answers each request with the next of the
 * responses that the caller appended to its address, as `…/v1/<JSON array, in base64url>`.
 */
export async function startModel(): Promise<{ port: number; url: string; [Symbol.asyncDispose](): Promise<void> }> {
  const asked = new Map<string, number>()
  const server = createServer(async (request, response) => {
    await json(request).catch(() => undefined)
    const [, script = ''] = /^\/v1\/([^/]+)\/chat\/completions/.exec(request.url ?? '') ?? []
    const answers = JSON.parse(Buffer.from(script, 'base64url').toString() || '[]') as unknown[]
    const turn = asked.get(script) ?? 0
    asked.set(script, turn + 1)
    const content = JSON.stringify(answers[Math.min(turn, answers.length - 1)] ?? {})
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        ...{ id: `chatcmpl-${turn}`, object: 'chat.completion', created: 0, model: 'stand-in' },
        choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
