/** Makes the viewer's browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // By then the browser has read the content.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
