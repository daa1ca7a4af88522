import { useMutation, useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Pending } from '../../components/feedback.tsx'
import { SchemaForm } from '../../components/schema-form.tsx'
import { common } from '../../components/strings.ts'
import type { Settings } from './resource.ts'

interface ItemSettingsProps {
  readonly settings: Settings
  readonly name: string
  readonly params: object
  readonly onClose: () => void
}

/** Shows settings of an item as they are, and changes them. */
export function ItemSettings({ settings, name, params, onClose }: ItemSettingsProps) {
  const { label, get, update } = settings
  const current = useQuery({
    queryKey: ['settings', label, params],
    queryFn: () => call(get, { params }),
    staleTime: 0,
    gcTime: 0,
  })
  const change = useMutation({ mutationFn: (body: unknown) => call(update, { params, body }), onSuccess: onClose })
  return (
    <Dialog title={`${label}: ${name}`} onClose={onClose}>
      {!current.data && <Pending query={current} />}
      {current.data !== undefined && (
        <SchemaForm
          schema={update.body}
          initial={withoutNulls(current.data as object)}
          submitLabel={common.save}
          isBusy={change.isPending}
          error={change.error}
          onSubmit={(value) => change.mutate(value)}
          onClose={onClose}
        />
      )}
    </Dialog>
  )
}

function withoutNulls(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}
