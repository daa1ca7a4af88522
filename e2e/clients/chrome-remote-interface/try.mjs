import assert from 'node:assert/strict'
import CDP from 'chrome-remote-interface'

const { CDP_WS_URL, SITE } = process.env
for (const options of [{}, { local: true }]) {
  const client = await new Promise((resolve, reject) => {
    CDP({ target: CDP_WS_URL, ...options }, resolve).on('error', reject)
  })
  const { targetId } = await client.Target.createTarget({ url: `${SITE}/second` })
  const { sessionId } = await client.Target.attachToTarget({ targetId, flatten: true })
  const question = { expression: 'location.pathname' }
  const { result } = await client.send('Runtime.evaluate', question, sessionId)
  assert.equal(result.type, 'string')
  await client.Target.closeTarget({ targetId })
  await client.close()
}
