import { extractDocument } from './extract-document.ts'
import type { FetchedDocument } from './extracted.ts'

/*
 * A separate process, because a page can make the extraction endless or exhaust its memory, which then only affects
 * this process. It has a small heap and no permission for files, programs and threads, and is killed at its time limit.
 */

process.on('message', (document: FetchedDocument) => {
  extractDocument(document).then(
    (extraction) => process.send?.(extraction),
    () => process.exit(1),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
