/** Reads the whole body as text. Throws an Error that names the sender if it is longer. */
export async function readText({ body }: Response, maxBytes: number, sender: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the response of ${sender} is too large`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
