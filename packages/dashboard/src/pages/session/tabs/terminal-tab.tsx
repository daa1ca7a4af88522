import {
  killProcess,
  resizeTerminal,
  spawnProcess,
  streamProcessOutput,
  writeProcessInput,
} from '@berth/contract/agent/operations/process-operations.ts'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'react'
import { call, follow } from '../../../api/client.ts'
import { words } from '../../../strings/session.ts'
import type { TabProps } from './tab-props.ts'

/** A shell in a terminal of the session. It ends with this tab. */
export function TerminalTab({ session: { session_id: id } }: TabProps) {
  const element = useRef<HTMLDivElement>(null)
  const [end, setEnd] = useState<string>()
  const [count, setCount] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another count starts another shell.
  useEffect(() => {
    const terminal = new Terminal({
      fontSize: 13,
      screenReaderMode: true,
      scrollback: 5_000,
      theme: { background: '#0f1318' },
    })
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    openWithNonce(terminal, element.current as HTMLElement)
    fit.fit()
    const leaving = new AbortController()
    const observer = new ResizeObserver(() => fit.fit())
    observer.observe(element.current as HTMLElement)
    setEnd(undefined)
    runShell(id, terminal, leaving.signal).then(
      (code) => setEnd(words.terminalEnded(code)),
      ({ message }: Error) => {
        if (!leaving.signal.aborted) setEnd(message)
      },
    )
    return () => {
      leaving.abort()
      observer.disconnect()
      terminal.dispose()
    }
  }, [id, count])
  return (
    <>
      <div ref={element} className="terminal" />
      {end !== undefined && (
        <p role="status">
          {end}{' '}
          <button type="button" className="small" onClick={() => setCount(count + 1)}>
            {words.terminalAgain}
          </button>
        </p>
      )}
    </>
  )
}

async function runShell(id: string, terminal: Terminal, signal: AbortSignal): Promise<number> {
  // One request at a time keeps the input in order; input that arrives meanwhile is sent together.
  let typed = ''
  let send: (() => Promise<void>) | undefined
  terminal.onData((text) => {
    typed += text
    void send?.()
  })
  terminal.focus()
  const { rows, cols } = terminal
  const environment = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }
  const { process_id } = await call(spawnProcess, {
    params: { id_or_name: id },
    body: { command: 'bash', args: ['-l'], allocate_tty: true, rows, cols, env: environment },
  })
  const params = { id_or_name: id, process_id }
  const kill = () => void call(killProcess, { params, body: { signal: 'KILL' } }).catch(() => {}) // It has ended.
  if (signal.aborted) kill()
  signal.addEventListener('abort', kill)

  let isSending = false
  send = async () => {
    if (isSending) return
    isSending = true
    while (typed !== '') {
      const text = typed
      typed = ''
      await call(writeProcessInput, { params, body: { data_b64: base64Of(text) } }).catch(() => {})
    }
    isSending = false
  }
  void send()
  terminal.onResize((size) => void call(resizeTerminal, { params, body: size }).catch(() => {}))
  for await (const output of follow(streamProcessOutput, { params, signal })) {
    if ('event' in output) {
      signal.removeEventListener('abort', kill)
      return output.exit_code
    }
    // Waits for the terminal, so that a flood of output is held back in the session.
    await new Promise<void>((resolve) => terminal.write(bytesOf(output.data_b64), resolve))
  }
  return -1
}

/** The page's policy allows only style sheets with its nonce, and the terminal creates some when it opens. */
function openWithNonce(terminal: Terminal, element: HTMLElement): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.nonce ?? ''
  const create = document.createElement.bind(document)
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const created = create(name, options)
    if (name === 'style') created.nonce = nonce
    return created
  }
  try {
    terminal.open(element)
  } finally {
    Reflect.deleteProperty(document, 'createElement')
  }
}

function base64Of(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)))
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}
