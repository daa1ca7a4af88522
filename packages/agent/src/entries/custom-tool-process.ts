import { Socket } from 'node:net'
import { browserHelpers } from '../repl/helpers/browser-helpers.ts'
import { define, defineModuleGlobals } from '../repl/module-globals.ts'
import { AgentQuestions, webMcpOfCode } from '../script-process/agent-questions.ts'
import { browserAddressQuestion } from '../script-process/browser-address.ts'
import { captureOutput } from '../script-process/captured-output.ts'
import { Deadline } from '../script-process/deadline.ts'
import { MessageLine } from '../script-process/message-line.ts'
import { type FromToolProcess, maxMessageBytes, type ToToolProcess } from '../webmcp/tool-process-messages.ts'
import { ToolRunner } from '../webmcp/tool-runner.ts'

process.title = 'webmcp-tools'

const [, , homeFolder = ''] = process.argv
/** Closes when the agent ends, whatever the reason. */
const agent = new Socket({ fd: 3 })
agent.on('close', () => process.exit())
const line = new MessageLine<FromToolProcess, ToToolProcess>(agent, {
  maxBytes: maxMessageBytes,
  onCorruption: () => process.exit(1),
  onMessage: async (message) => {
    if (message.type === 'answer') questions.take(message)
    else line.send(await runner.run(message))
  },
})
const deadline = new Deadline()
const questions = new AgentQuestions((question) => line.send(question), deadline)
// The console output of tools is discarded.
captureOutput(() => {})

const address = () => questions.ask(browserAddressQuestion, {}) as Promise<string>
const { tab, helpers } = browserHelpers({ address, deadline })
const webmcp = Object.freeze(webMcpOfCode(questions))
const browser = Object.freeze({ ...helpers, webmcp })
for (const [name, value] of Object.entries({ ...browser, browser })) define(name, value)
defineModuleGlobals(homeFolder, import.meta.dirname)
const runner = new ToolRunner({ tab, deadline })
