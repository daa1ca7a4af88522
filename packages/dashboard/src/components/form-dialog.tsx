import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { z } from 'zod'
import { Dialog } from './dialog.tsx'
import { SchemaForm } from './schema-form.tsx'

interface FormDialogProps<Reply> {
  readonly title: string
  readonly hint?: string
  readonly schema: z.ZodType
  /** Absent while loading: `pending` is shown instead of the form. */
  readonly initial?: Readonly<Record<string, unknown>> | undefined
  readonly pending?: ReactNode
  readonly submitLabel: string
  readonly busyLabel?: string
  readonly send: (value: never) => Promise<Reply>
  readonly onDone: (reply: Reply) => unknown
  readonly onClose: () => void
  readonly preview?: (value: unknown) => ReactNode
}

/** A dialog with the form of a request, which closes when the request succeeds. */
export function FormDialog<Reply>(props: FormDialogProps<Reply>) {
  const { title, hint, schema, initial, pending, submitLabel, busyLabel = submitLabel, send, onDone, onClose } = props
  const request = useMutation({ mutationFn: (value: unknown) => send(value as never), onSuccess: onDone })
  return (
    <Dialog title={title} onClose={onClose} isWide>
      {hint && <p className="quiet">{hint}</p>}
      {pending || (
        <SchemaForm
          schema={schema}
          initial={initial ?? {}}
          submitLabel={request.isPending ? busyLabel : submitLabel}
          isBusy={request.isPending}
          error={request.error}
          onSubmit={(value) => request.mutate(value)}
          onClose={onClose}
          {...(props.preview && { preview: props.preview })}
        />
      )}
    </Dialog>
  )
}
