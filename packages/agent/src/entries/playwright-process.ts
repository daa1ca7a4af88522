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
/** Closes when the agent ends, whatever the reason. */
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
  // Lets the code import this program's packages.
  codeFile: join(import.meta.dirname, 'code.js'),
})

// Playwright and callers leave promises that reject when their tab closes: logged for the call, without ending it.
process.on('unhandledRejection', (reason) =>
  output.write('stderr', `Unhandled rejection: ${String((reason as Error)?.stack ?? reason)}\n`),
)
// After this the state of the process is unknown.
process.on('uncaughtException', (error) => runner.fail(error, () => process.exit(1)))

/** Patchright has the API of Playwright, although its types are different. */
async function loadLibrary(name: string | undefined): Promise<typeof Playwright> {
  if (name !== 'patchright') return import('playwright-core')
  return (await import('patchright-core')) as unknown as typeof Playwright
}
