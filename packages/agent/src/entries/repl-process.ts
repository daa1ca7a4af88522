import { Socket } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import { Evaluator } from '../repl/evaluator.ts'
import { helpText } from '../repl/help.ts'
import { browserHelpers } from '../repl/helpers/browser-helpers.ts'
import { define, defineModuleGlobals } from '../repl/module-globals.ts'
import { type FromRepl, limits, type ToRepl } from '../repl/repl-messages.ts'
import { ReplOutput } from '../repl/repl-output.ts'
import { AgentQuestions, customToolsOfCode, webMcpOfCode } from '../script-process/agent-questions.ts'
import { browserAddressQuestion } from '../script-process/browser-address.ts'
import { captureOutput } from '../script-process/captured-output.ts'
import { Deadline } from '../script-process/deadline.ts'
import { MessageLine } from '../script-process/message-line.ts'

process.title = 'repl'

const [, , replId = '', homeFolder = ''] = process.argv
const deadline = new Deadline()
/** Closes when the agent ends, whatever the reason. */
const agent = new Socket({ fd: 3 })
agent.on('close', () => process.exit())
const line = new MessageLine<FromRepl, ToRepl>(agent, {
  maxBytes: limits.messageBytes,
  onCorruption: () => process.exit(1),
  onMessage: (message) => (message.type === 'run' ? void run(message) : questions.take(message)),
})
const questions = new AgentQuestions((question) => line.send(question), deadline)
const output = new ReplOutput((message) => line.send(message))
captureOutput((channel, text) => output.text(channel, text))
const evaluator = new Evaluator()
defineModuleGlobals(homeFolder, import.meta.dirname)

const webmcp = Object.freeze({ ...webMcpOfCode(questions), ...customToolsOfCode(questions) })
const address = () => questions.ask(browserAddressQuestion, {}) as Promise<string>
const { helpers } = browserHelpers({ address, deadline })
const repl = Object.freeze({
  id: replId,
  write: (value: unknown) => output.write(value),
  emitImage: (image: unknown) => output.emitImage(image),
  help: () => {
    output.write(helpText)
    return helpText
  },
})
const browser = Object.freeze({ ...helpers, repl, webmcp })
for (const [name, value] of Object.entries({ ...browser, browser })) define(name, value)

line.send({ type: 'ready' })

async function run({ code, timeoutMilliseconds }: Extract<ToRepl, { type: 'run' }>): Promise<void> {
  deadline.set(timeoutMilliseconds)
  output.beginCall()
  const failure = await evaluator.run(code)
  // A promise that the code did not await but that rejects immediately still counts as its error.
  await immediate()
  output.endCall()
  line.send({ type: 'done', ...(failure && { failure }) })
}
