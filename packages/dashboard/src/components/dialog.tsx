import { type ReactNode, useEffect, useRef } from 'react'
import { common } from '../strings/common.ts'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly isWide?: boolean
  readonly children: ReactNode
}

/** The browser's own modal dialog, which keeps the focus and closes with Escape. */
export function Dialog({ title, onClose, isWide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = element.current
    if (!dialog?.open) dialog?.showModal()
  }, [])
  return (
    <dialog ref={element} className={isWide ? 'wide' : ''} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" className="ghost" aria-label={common.close} onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly question: string
  readonly warning?: string
  readonly action?: string
  readonly isBusy: boolean
  readonly error: Error | null
  readonly onConfirm: () => void
  readonly onClose: () => void
}

export function Confirm(props: ConfirmProps) {
  const { question, warning = common.removeWarning, action = common.remove, isBusy, error, onConfirm, onClose } = props
  return (
    <Dialog title={question} onClose={onClose}>
      <p>{warning}</p>
      {error && (
        <p className="notice bad" role="alert">
          {error.message}
        </p>
      )}
      <footer>
        <button type="button" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="button" className="danger" disabled={isBusy} onClick={onConfirm}>
          {action}
        </button>
      </footer>
    </Dialog>
  )
}
