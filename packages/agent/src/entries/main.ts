import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { makeAppFolders } from '../apps/make-app-folders.ts'
import { Browser } from '../browser/browser.ts'
import { listenOptions, readConfig } from '../config.ts'
import { ExtensionSet } from '../extensions/extension-set.ts'
import { ServiceLogs } from '../logs/service-logs.ts'
import { Capture } from '../network/capture.ts'
import { startDevToolsGuard } from '../network/devtools-guard.ts'
import { EventLog } from '../reporting/event-log.ts'
import { StateFeed } from '../reporting/state-feed.ts'
import { CaptchaTasks } from '../telemetry/captcha-tasks.ts'
import { TelemetryCollector } from '../telemetry/telemetry-collector.ts'

/** Time for the server to receive the reason why the agent ends. */
const exitDelayMilliseconds = 500

const logger = createLogger({ name: 'agent', level: 'info', json: true })
// One thread more than Node.js's default, set before the first one starts: one thread always waits for frames.
process.env.UV_THREADPOOL_SIZE = '5'
const config = await readConfig(process.argv[2])
const state = new StateFeed(systemClock)
const events = new EventLog(systemClock)
const captchaTasks = config.solves_captchas ? new CaptchaTasks(events) : undefined
const telemetry = new TelemetryCollector(systemClock, logger, captchaTasks)
const serviceLogs = new ServiceLogs(systemClock)

const capture = new Capture(config.egress_socket, logger, (name) => telemetry.noteLookup(name))
capture.start()
startDevToolsGuard(config.chromium_path, logger)
const extensions = new ExtensionSet(logger, { isExpected: config.awaits_extensions })
const browser = new Browser({ config, extensions, state, events, telemetry, serviceLogs, logger })
process.on('SIGTERM', () => void stop())
// An error left by one connection or call must not end the session.
process.on('unhandledRejection', (reason) => logger.error({ err: reason }, 'unhandled rejection'))
// Before the rest is loaded, which would delay the start of Chromium, the slowest step.
if (config.is_app) {
  await makeAppFolders()
  state.becomeReady()
} else {
  browser.start()
  await browser.launched
}

const { createApp } = await import('../app.ts')
const reporting = { state, events, telemetry, captchaTasks, serviceLogs, logger }
createApp({ config, browser, capture, extensions, ...reporting, stop }).listen(listenOptions(config))

const reason = await browser.givenUp
logger.error({ reason }, 'giving up on the browser')
telemetry.giveUp()
state.fail(reason)
await delay(exitDelayMilliseconds)
process.exit(1)

/** Stops the browser; the agent exits after its response is sent. */
async function stop(): Promise<void> {
  await browser.stop()
  setTimeout(() => process.exit(0), exitDelayMilliseconds / 10)
}
