import { extractDocument } from './extract-document.ts'
import type { FetchedDocument } from './extracted.ts'

/*
 * A process of its own: a page can make its reading endless or take all of its memory, and takes nothing but this
 * process with it. It has a small heap, no rights to files, programs and threads, and is killed when it is late.
 */

process.on('message', (document: FetchedDocument) => {
  extractDocument(document).then(
    (extraction) => process.send?.(extraction),
    () => process.exit(1),
  )
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
