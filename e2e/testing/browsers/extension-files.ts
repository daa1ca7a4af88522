import { createHash, createSign, generateKeyPairSync } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { ZipFile } from 'yazl'

export type Files = Readonly<Record<string, string | Buffer>>

/** Creates an ordinary archive. */
export async function zipOf(files: Files): Promise<Buffer> {
  const zip = new ZipFile()
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name)
  zip.end()
  return buffer(zip.outputStream as NodeJS.ReadableStream)
}

/** Packs an extension like Chromium (CRX3), signed with a new key. Also returns the id that follows from the key. */
export function packCrx(zip: Buffer): { readonly crx: Buffer; readonly id: string } {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = publicKey.export({ type: 'spki', format: 'der' })
  const id = createHash('sha256').update(key).digest().subarray(0, 16)
  const signedData = field(1, id)
  const signature = createSign('sha256')
    .update('CRX3 SignedData\0')
    .update(u32(signedData.length))
    .update(signedData)
    .update(zip)
    .sign(privateKey)
  const header = Buffer.concat([
    field(2, Buffer.concat([field(1, key), field(2, signature)])),
    field(10_000, signedData),
  ])
  const letters = [...id.toString('hex')].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)))
  return { crx: Buffer.concat([Buffer.from('Cr24'), u32(3), u32(header.length), header, zip]), id: letters.join('') }
}

/** A protocol buffer field of bytes. */
function field(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest < 128 ? rest : (rest % 128) + 128)
    if (rest < 128) return Buffer.from(bytes)
  }
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** An extension whose content script sets `data-<name>` to the response of its background worker. */
export function messagingExtension(name: string, answer: number): Files {
  return {
    'manifest.json': `// Comments are allowed here.
      ${JSON.stringify({
        manifest_version: 3,
        name,
        version: '1.0',
        background: { service_worker: 'worker.js' },
        content_scripts: [{ matches: ['<all_urls>'], js: ['content.js'], run_at: 'document_start' }],
      })}`,
    'worker.js': `chrome.runtime.onMessage.addListener((message, sender, reply) => reply(${answer}))`,
    'content.js': `
      document.documentElement.dataset.ext = '1'
      chrome.runtime.sendMessage('number').then((number) => { document.documentElement.dataset.${name} = number })`,
  }
}
