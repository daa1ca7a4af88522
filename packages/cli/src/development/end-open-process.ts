import { after } from 'node:test'

/** For hooks of the file that run after this one, and for the end of a borrowed berth. */
const patienceMilliseconds = Number(process.env.BERTH_TEST_PATIENCE_MS ?? 60_000)

// Loaded before each test file. A file that leaves something open would keep its place until the limit for hanging tests.
after(() => {
  const end = setTimeout(() => {
    console.error(`The tests have ended, but this is still open: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  }, patienceMilliseconds)
  // A process that has nothing open does not wait for it.
  end.unref()
})
