import type { ErrorComponentProps } from '@tanstack/react-router'
import { words } from '../strings/broken-page.ts'

/** Replaces a page whose code has thrown an error. */
export function BrokenPage({ error }: ErrorComponentProps) {
  return (
    <div className="notice bad" role="alert">
      <p className="strong">{words.title}</p>
      <p>{words.hint}</p>
      <p>{String(error)}</p>
      <button type="button" onClick={() => location.reload()}>
        {words.reload}
      </button>
    </div>
  )
}
