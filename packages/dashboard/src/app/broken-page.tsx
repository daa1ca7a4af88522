import type { ErrorComponentProps } from '@tanstack/react-router'

const words = {
  title: 'This page is broken.',
  hint: 'The fault is that of berth. The other pages still work.',
  reload: 'Load it again',
}

/** In the place of a page whose own code has failed. */
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
