import { Badge } from '../../components/feedback.tsx'
import { Age } from '../../components/format.tsx'
import { columns, values } from '../../strings/lists.ts'

/** When an item was created. */
export const age = <Item extends { readonly created_at: string }>() => ({
  title: columns.age,
  value: ({ created_at }: Item) => <Age since={created_at} />,
})

export const used = (at: string | null | undefined) => (at ? <Age since={at} /> : values.never)

/** A state with its colour. */
export const toned = (text: string) => {
  const good = ['available', 'running', 'succeeded', 'active']
  const bad = ['unavailable', 'failed']
  return <Badge tone={good.includes(text) ? 'good' : bad.includes(text) ? 'bad' : 'plain'}>{text}</Badge>
}
