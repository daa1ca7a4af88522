/** Names and values in turns, as they came: order and spelling are part of what a server sees of a browser. */
export type RawHeaders = readonly string[]

const alwaysOfConnection = ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade']
const sendableName = /^[\w!#$%&'*+.^`|~-]+$/
const sendableValue = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * The headers of a request as they go on to the server. `Connection` takes the place of the client's `Connection` or
 * `Proxy-Connection`, so that the request looks as if it had been sent without a proxy.
 */
export function requestHeaders(raw: RawHeaders, host: string, upgrade?: string): string[] {
  const ofConnection = namesOfConnection(raw)
  // Each is sent once, where it stood first.
  const values = new Map([
    ['host', host],
    ['connection', upgrade === undefined ? 'keep-alive' : 'Upgrade'],
    ['transfer-encoding', 'chunked'],
  ])
  if (upgrade !== undefined) values.set('upgrade', upgrade)
  const replace = (name: string) => {
    const value = values.get(name.toLowerCase())
    values.delete(name.toLowerCase())
    return value === undefined ? [] : [name, value]
  }

  const headers = pairs(raw).flatMap(([name, value]) => {
    const lowerCase = name.toLowerCase()
    if (lowerCase === 'proxy-connection') return replace(name.slice('proxy-'.length))
    if (lowerCase === 'host' || alwaysOfConnection.includes(lowerCase)) return replace(name)
    return ofConnection.has(lowerCase) || !isSendable(name, value) ? [] : [name, value]
  })
  // HTTP/1.0 clients may send no Host.
  return [...replace('Host'), ...headers]
}

/** The headers of an answer as they go on to the client. Proxy headers are for egress to send, so no server can. */
export function answerHeaders(raw: RawHeaders): string[] {
  const ofConnection = namesOfConnection(raw)
  // An answer with both is read as chunked; the length that it names is not to be trusted.
  if (pairs(raw).some(([name]) => name.toLowerCase() === 'transfer-encoding')) ofConnection.add('content-length')
  return sendable(raw, (name) => !ofConnection.has(name))
}

/** The headers of an answer that accepts an upgrade: `Connection` and `Upgrade` are what the client waits for. */
export function upgradeHeaders(raw: RawHeaders): string[] {
  return sendable(raw, () => true)
}

export function pairs(raw: RawHeaders): [name: string, value: string][] {
  return raw.flatMap((name, index): [string, string][] => (index % 2 === 0 ? [[name, raw[index + 1] ?? '']] : []))
}

/** What concerns one connection and not the message: these names, and those that `Connection` lists. */
function namesOfConnection(raw: RawHeaders): Set<string> {
  const listed = pairs(raw)
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((name) => name.trim())
  const names = new Set([...alwaysOfConnection, ...listed])
  // Without these the message itself would change, so a `Connection` header cannot take them away.
  names.delete('content-length')
  names.delete('host')
  return names
}

function sendable(raw: RawHeaders, isKept: (lowerCase: string) => boolean): string[] {
  return pairs(raw)
    .filter(([name, value]) => isKept(name.toLowerCase()) && isSendable(name, value))
    .flat()
}

/** The parser takes characters that Node refuses to send. Proxy headers belong to the one hop between client and egress. */
function isSendable(name: string, value: string): boolean {
  const isOfProxy = /^(proxy-|x-berth-egress$|x-kernel-proxy-error$)/i.test(name)
  return !isOfProxy && sendableName.test(name) && sendableValue.test(value)
}
