import { useState } from 'react'
import { common } from '../strings/common.ts'

export function CopyButton({ text, label = common.copy }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await copyText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 2000)
  }
  return (
    <button type="button" className="small" onClick={() => void copy()}>
      {isCopied ? common.copied : label}
    </button>
  )
}

/** Pages over plain HTTP, except on loopback, have no clipboard API. */
async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}
