/** Has the viewer's browser store a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // The browser has taken the content up by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
