import htmlEncodingSniffer from 'html-encoding-sniffer'
import type { ExtractedText, Extraction, FetchedDocument } from './extracted.ts'

const maxTextCharacters = 1_000_000

/** Extracts the readable text of a document of any type. Libraries are imported on first use. */
export async function extractDocument(document: FetchedDocument): Promise<Extraction> {
  try {
    const kind = kindOf(document)
    if (kind === 'other') return { outcome: 'unsupported_type', type: essenceOf(document.contentType) || 'unknown' }
    const extracted = await extractAs(kind, document)
    return { outcome: 'extracted', ...extracted }
  } catch (error) {
    return { outcome: 'failed', reason: (error as Error).message.slice(0, 200) }
  }
}

type Kind = 'html' | 'pdf' | 'text' | 'other'

async function extractAs(kind: Exclude<Kind, 'other'>, document: FetchedDocument): Promise<ExtractedText> {
  if (kind === 'pdf') {
    const { extractPdf } = await import('./extract-pdf.ts')
    return plain(await extractPdf(document.bytes, maxTextCharacters))
  }
  if (kind === 'text') return plain(decode(document))
  const { extractHtml } = await import('./extract-html.ts')
  const { markdown, text, ...rest } = extractHtml(decode(document), document.url)
  return { markdown: markdown.slice(0, maxTextCharacters), text: text.slice(0, maxTextCharacters), ...rest }
}

function plain(text: string): ExtractedText {
  const trimmed = text.slice(0, maxTextCharacters).trim()
  return { markdown: trimmed, text: trimmed, needsScript: false, isChallenge: false }
}

function essenceOf(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

const textTypes = /^(text\/.*|application\/(json|xml|javascript|x-yaml|yaml|toml|.*\+json|.*\+xml))$/

function kindOf({ bytes, contentType }: FetchedDocument): Kind {
  const type = essenceOf(contentType)
  const begin = Buffer.from(bytes.subarray(0, 1024)).toString('latin1')
  if (type === 'application/pdf' || (isVague(type) && begin.startsWith('%PDF-'))) return 'pdf'
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html'
  if (textTypes.test(type)) return 'text'
  if (!isVague(type)) return 'other'
  if (/<(!doctype html|html|head|body)[\s>]/i.test(begin)) return 'html'
  return isBinary(begin) ? 'other' : 'text'
}

/**
 * Text contains no control characters except tabs, line ends, form feeds, and the escape character of some encodings.
 */
function isBinary(begin: string): boolean {
  const usual = ['\t', '\n', '\f', '\r', '\x1b']
  return [...begin].some((character) => character < ' ' && !usual.includes(character))
}

function isVague(type: string): boolean {
  return type === '' || type === 'application/octet-stream' || type === 'application/x-download'
}

/**
 * Determines the encoding by the rules of HTML: byte order mark, then the header, then the document, then the default.
 */
function decode({ bytes, contentType }: FetchedDocument): string {
  const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? '')?.[1]
  const sniffed = htmlEncodingSniffer(bytes, {
    ...(charset !== undefined && { transportLayerEncodingLabel: charset }),
    defaultEncoding: isUtf8(bytes) ? 'UTF-8' : 'windows-1252',
  })
  return new TextDecoder(sniffed === 'x-user-defined' ? 'windows-1252' : sniffed).decode(bytes)
}

/** Text without a declared encoding is mostly UTF-8. */
function isUtf8(bytes: Uint8Array): boolean {
  try {
    // Tolerates a character that was split where a long document was truncated.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
