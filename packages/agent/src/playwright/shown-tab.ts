import { get } from 'node:http'
import { json } from 'node:stream/consumers'
import type { BrowserAddress } from './executor-messages.ts'

interface ListedTarget {
  readonly id: string
  readonly type: string
}

/**
 * The tab that was last in front. Chromium lists it first, and asks no page for it: one of them might not answer.
 */
export async function shownTab({ port }: BrowserAddress): Promise<string | undefined> {
  const targets = await new Promise((resolve, reject) => {
    const asked = get({ host: '127.0.0.1', port, path: '/json/list', agent: false }, (answer) =>
      json(answer).then(resolve, reject),
    )
    asked.on('error', reject)
  })
  return (targets as readonly ListedTarget[]).find(({ type }) => type === 'page')?.id
}
