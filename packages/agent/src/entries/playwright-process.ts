import { Socket } from 'node:net'
import { join } from 'node:path'
import type * as Playwright from 'playwright-core'
import { CallOutput } from '../playwright/call-output.ts'
import { CodeRunner } from '../playwright/code-runner.ts'
import { type FromExecutor, maxMessageBytes, type ToExecutor } from '../playwright/executor-messages.ts'
import { GatedConnection } from '../playwright/gated-connection.ts'
import { AgentQuestions, webMcpOfCode } from '../script-process/agent-questions.ts'
import { captureOutput } from '../script-process/captured-output.ts'
import { Deadline } from '../script-process/deadline.ts'
import { MessageLine } from '../script-process/message-line.ts'

process.title = 'playwright'

const gate = GatedConnection.startGate()
/** The agent's end of it closes with the agent, however that ends. */
const agent = new Socket({ fd: 3 })
agent.on('close', () => process.exit())
const line = new MessageLine<FromExecutor, ToExecutor>(agent, {
  maxBytes: maxMessageBytes,
  onCorruption: () => process.exit(1),
  onMessage: (message) => {
    if (message.type === 'run') void runner.run(message)
    else questions.take(message)
  },
})
const questions = new AgentQuestions((question) => line.send(question), new Deadline())
const output = new CallOutput((channel, text) => line.send({ type: 'output', channel, text }))
captureOutput((channel, text) => output.write(channel, text))
const runner = new CodeRunner({
  line,
  output,
  gate,
  webmcp: webMcpOfCode(questions),
  library: loadLibrary(process.argv[2]),
  // Imports of the code find the packages that this program has.
  codeFile: join(import.meta.dirname, 'code.js'),
})

// Playwright and callers leave promises behind whose tab closes later: a line for the call, and not its end.
process.on('unhandledRejection', (reason) =>
  output.write('stderr', `Unhandled rejection: ${String((reason as Error)?.stack ?? reason)}\n`),
)
// After this nobody knows what state the process is in.
process.on('uncaughtException', (error) => runner.fail(error, () => process.exit(1)))

/** Patchright is Playwright with other insides, though its types do not know it. */
async function loadLibrary(name: string | undefined): Promise<typeof Playwright> {
  if (name !== 'patchright') return import('playwright-core')
  return (await import('patchright-core')) as unknown as typeof Playwright
}
