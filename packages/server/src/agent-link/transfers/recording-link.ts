import type { IncomingMessage } from 'node:http'
import { endRecording, type RecordRequest, recordScreen } from '@berth/contract/agent/agent-endpoints.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { callAgent } from '../agent-client.ts'
import { AgentRefusal, commandAgent } from '../command-agent.ts'

const startLimitMilliseconds = 9_000
const endLimitMilliseconds = 3_000
const maxRefusalLength = 10_000

/**
 * Makes the agent record the screen. The bytes are untrusted and end with the recording. Rejects with an `AgentRefusal`
 * when the agent cannot record.
 */
export async function startRecording(machine: ReachableMachine, request: RecordRequest): Promise<IncomingMessage> {
  const { method, path } = recordScreen
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Error('the recorder does not respond')), startLimitMilliseconds)
  try {
    const headers = { 'content-type': 'application/json' }
    const call = { method, path, headers, body: JSON.stringify(request), signal: limit.signal }
    const response = await callAgent(machine, call)
    if (response.statusCode !== 200) throw new AgentRefusal(path, response.statusCode ?? 502, await refusalOf(response))
    return response
  } finally {
    clearTimeout(timer)
  }
}

/** The recording ends after its last frame. */
export async function endReplayRecording(machine: ReachableMachine, id: string): Promise<void> {
  await commandAgent(machine, endRecording, { id }, { limitMilliseconds: endLimitMilliseconds })
}

async function refusalOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    if (text.length > maxRefusalLength) break
  }
  return text
}
