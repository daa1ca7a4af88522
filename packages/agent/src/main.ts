import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { AgentEvents } from './agent-events.ts'
import { Browser } from './browser/browser.ts'
import { readConfig } from './config.ts'
import { ExtensionSet } from './extensions/extension-set.ts'
import { startForwarder } from './forwarder.ts'

/** The socket that the driver has opened outside of the machine: nothing in here can take its place. */
const inheritedSocket = 3
/** Time for the server to hear why the agent ends. */
const farewellMilliseconds = 500

const logger = createLogger({ name: 'agent', level: 'info', json: true })
const config = await readConfig(process.argv[2])
const events = new AgentEvents(systemClock)

const { port: proxyPort } = await startForwarder(config.proxy_port, config.egress_socket)
const extensions = new ExtensionSet(logger, { isExpected: config.awaits_extensions })
const browser = new Browser({ config, proxyPort, extensions, events, logger })
process.on('SIGTERM', () => void stop())
// Before the rest is loaded: a session is ready when its browser is, and that takes longest.
browser.start()

const { createApp } = await import('./app.ts')
createApp({ config, browser, proxyPort, extensions, events, logger, stop }).listen({ fd: inheritedSocket })

const reason = await browser.givenUp
logger.error({ reason }, 'the browser is given up')
events.fail(reason)
await delay(farewellMilliseconds)
process.exit(1)

/** Ends the browser; the agent follows when its answer is out. */
async function stop(): Promise<void> {
  await browser.stop()
  setTimeout(() => process.exit(0), farewellMilliseconds / 10)
}
