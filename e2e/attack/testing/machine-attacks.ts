/* Modules for Node.js in a machine. They write JSON. */

/** Reports which of the `[host, port]` pairs accepted a connection. */
export function connectTo(targets: readonly unknown[]): string {
  return `
import { connect } from 'node:net'
const attempt = ([host, port]) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 3000 })
  const end = (result) => { socket.destroy(); resolve(result) }
  socket.on('connect', () => end(host + ' ' + port)).on('error', () => end()).on('timeout', () => end())
})
console.log(JSON.stringify((await Promise.all(${JSON.stringify(targets)}.map(attempt))).filter(Boolean)))`
}

export function connectToUnix(paths: readonly string[]): string {
  return `
import { connect } from 'node:net'
const attempt = (path) => new Promise((resolve) => {
  const socket = connect(path)
  const end = (result) => { socket.destroy(); resolve(result) }
  socket.on('connect', () => end(path)).on('error', () => end())
})
console.log(JSON.stringify((await Promise.all(${JSON.stringify(paths)}.map(attempt))).filter(Boolean)))`
}

export function sendDatagrams(hosts: readonly string[], ports: readonly number[]): string {
  return `
import { createSocket } from 'node:dgram'
const socket = createSocket('udp4')
await new Promise((resolve) => socket.bind(resolve))
socket.setBroadcast(true)
const send = (host, port) => new Promise((resolve) => socket.send('leak', port, host, resolve))
for (const host of ${JSON.stringify(hosts)}) for (const port of ${JSON.stringify(ports)}) await send(host, port)
socket.close()
console.log('[]')`
}

/** Reports which names were resolved, by the system's resolver and by name servers that are queried directly. */
export function lookUp(names: readonly string[]): string {
  return `
import { lookup, Resolver } from 'node:dns/promises'
const resolver = new Resolver({ timeout: 1000, tries: 1 })
resolver.setServers(['100.127.0.2', '8.8.8.8'])
const found = []
for (const name of ${JSON.stringify(names)}) {
  await lookup(name).then(() => found.push(name), () => {})
  await resolver.resolve4(name).then(() => found.push(name), () => {})
}
console.log(JSON.stringify(found))`
}
