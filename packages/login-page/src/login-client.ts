import { LoginIsOver, type LoginState, Refusal } from './login-state.ts'

const pauseMilliseconds = 2_000
const endedStatuses = [401, 404, 410]

export interface SubmitBody {
  readonly interaction_id?: string
  readonly field_values?: Readonly<Record<string, string>>
  readonly selected_choice_id?: string
}

/** The API calls of the page, with the token that it has received for its code. */
export class LoginClient {
  readonly #url: string
  #token: string | undefined

  constructor(connectionUrl: string, token: string | undefined) {
    this.#url = connectionUrl
    this.#token = token
  }

  /** Exchanges the code, which works once. */
  async exchange(code: string): Promise<string> {
    const response = await fetch(`${this.#url}/exchange`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    })
    if (!response.ok) throw new LoginIsOver(await messageOf(response))
    const { jwt } = (await response.json()) as { jwt: string }
    this.#token = jwt
    return jwt
  }

  async read(): Promise<LoginState> {
    const response = await this.#ask('')
    return (await response.json()) as LoginState
  }

  async submit(body: SubmitBody): Promise<void> {
    await this.#ask('/submit', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  /**
   * Calls back with each state until the last. The stream only signals changes, and each state is fetched: so both can
   * fail independently, and the page shows what any other client sees.
   */
  async follow(tell: (state: LoginState) => void): Promise<void> {
    for (;;) {
      try {
        const first = await this.read()
        tell(first)
        if (first.flow_status !== 'IN_PROGRESS') return
        for await (const _event of this.#events()) {
          const state = await this.read()
          tell(state)
          if (state.flow_status !== 'IN_PROGRESS') return
        }
      } catch (error) {
        if (error instanceof LoginIsOver) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMilliseconds))
    }
  }

  async *#events(): AsyncGenerator<void> {
    const response = await this.#ask('/events')
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      const { done, value = '' } = (await reader?.read()) ?? { done: true }
      if (done) return
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      if (lines.some((line) => line.startsWith('data: ') && line.includes('"managed_auth_state"'))) yield
    }
  }

  async #ask(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(`${this.#url}${path}`, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${this.#token}` },
    })
    if (response.ok) return response
    const message = await messageOf(response)
    throw endedStatuses.includes(response.status) ? new LoginIsOver(message) : new Refusal(message)
  }
}

async function messageOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as { message?: string }
  return body.message ?? 'The server sent an unexpected response.'
}
