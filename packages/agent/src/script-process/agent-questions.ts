import type { Deadline } from './deadline.ts'

/** Why the agent could not fulfil a request of code. */
export interface ToolFailure {
  readonly message: string
  readonly status: number
  readonly code: string
  readonly invocationId?: string
}

/** A request of code to the agent. */
export interface Question {
  readonly type: 'ask'
  readonly id: number
  readonly method: string
  readonly params: unknown
}

export interface Answer {
  readonly type: 'answer'
  readonly id: number
  readonly result?: unknown
  readonly error?: ToolFailure
}

/** In a process that runs code: sends requests to the agent, also for `webmcp`. */
export class AgentQuestions {
  readonly #send: (question: Question) => void
  readonly #deadline: Deadline
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0

  constructor(send: (question: Question) => void, deadline: Deadline) {
    this.#send = send
    this.#deadline = deadline
  }

  async ask(method: string, params: object): Promise<unknown> {
    const id = ++this.#lastId
    const answer = Promise.withResolvers<unknown>()
    this.#open.set(id, answer)
    this.#send({ type: 'ask', id, method, params })
    const answered = answer.promise.then((result) => ({ result }))
    const inTime = await this.#deadline.race(this.#deadline.within(), answered)
    if (!inTime) throw new Error(`webmcp.${method} was not answered in time.`)
    return inTime.result
  }

  take({ id, result, error }: Answer): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    if (error) open?.reject(new WebMcpError(error))
    else open?.resolve(result)
  }
}

/** A failed request, with the error that callers of the API get. */
class WebMcpError extends Error {
  override readonly name = 'WebMCPError'
  readonly statusCode: number
  readonly code: string
  readonly invocationId: string | undefined
  readonly body: object

  constructor({ message, status, code, invocationId }: ToolFailure) {
    super(message)
    this.statusCode = status
    this.code = code
    this.invocationId = invocationId
    this.body = { code, message, ...(invocationId !== undefined && { invocation_id: invocationId }) }
  }
}

/** In the agent: responds with the result of `answer`. */
export async function answerQuestion(
  { id, method, params }: Question,
  answer: (method: string, params: unknown) => Promise<unknown>,
): Promise<Answer> {
  try {
    return { type: 'answer', id, result: await answer(method, params) }
  } catch (error) {
    const { message, status = 500, code = 'internal_error', invocationId } = error as Partial<ToolFailure> & Error
    return { type: 'answer', id, error: { message, status, code, ...(invocationId !== undefined && { invocationId }) } }
  }
}

/** Functions for code to manage custom tools. */
export function customToolsOfCode(questions: AgentQuestions) {
  return {
    addCustomTools: ({ namespace, source, forceOverwriteNamespace }: NewCustomTools) =>
      questions.ask('addCustomTools', { namespace, source, force_overwrite_namespace: forceOverwriteNamespace }),
    listCustomTools: () => questions.ask('listCustomTools', {}),
    removeCustomTool: (id: string) => questions.ask('removeCustomTool', { id }),
  }
}

interface NewCustomTools {
  readonly namespace: string
  readonly source: string
  readonly forceOverwriteNamespace?: boolean
}

/** The `webmcp` object of code. */
export function webMcpOfCode(questions: AgentQuestions) {
  return {
    listTools: () => questions.ask('listTools', {}),
    invokeTool: (toolRef: string, input?: object, { timeoutSec }: { timeoutSec?: number } = {}) =>
      questions.ask('invokeTool', { tool_ref: toolRef, input, timeout_sec: timeoutSec }),
  }
}
