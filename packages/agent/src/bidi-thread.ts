import { parentPort, workerData } from 'node:worker_threads'
import { startBidiServer } from './bidi/bidi-server.ts'

// The mapper was written to run in a page, where a promise that nobody waits for is a line in the console: a tab that
// closes while it is attached must not end every client.
process.on('unhandledRejection', () => {})

await startBidiServer(workerData.socketPath)
parentPort?.postMessage('listening')
