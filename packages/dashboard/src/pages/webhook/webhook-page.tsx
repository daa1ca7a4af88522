import { type WebhookDelivery, WebhookDeliveryStatus } from '@berth/contract/webhooks/webhook.ts'
import { getWebhook, listWebhookDeliveries, redeliverWebhook } from '@berth/contract/webhooks/webhook-endpoints.ts'
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { call, callPage } from '../../api/client.ts'
import { listKey } from '../../api/list-key.ts'
import { Badge, Empty, Failure, Pending } from '../../components/feedback.tsx'
import { Age, timeText } from '../../components/format.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { StackedTable } from '../../components/stacked-table.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/webhook.ts'
import { DeliveryDetails } from './delivery-details.tsx'

const route = getRouteApi('/shell/webhooks/$webhook')

/** The deliveries of a webhook and their responses. */
export function WebhookPage() {
  const { webhook: id } = route.useParams()
  const { status } = route.useSearch()
  const navigate = route.useNavigate()
  const [shown, setShown] = useState<WebhookDelivery>()
  const webhook = useQuery({
    queryKey: [...listKey('webhooks'), id],
    queryFn: () => call(getWebhook, { params: { id } }),
  })
  const deliveries = useInfiniteQuery({
    queryKey: [...listKey('deliveries'), id, status],
    queryFn: ({ pageParam, signal }) =>
      callPage(listWebhookDeliveries, { params: { id }, query: { limit: 50, offset: pageParam, status }, signal }),
    initialPageParam: 0,
    getNextPageParam: ({ nextOffset }) => nextOffset,
    placeholderData: (before) => before,
  })
  const all = deliveries.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <>
      <header className="page">
        <Link to="/$resource" params={{ resource: 'webhooks' }}>
          {words.all}
        </Link>
        <PageTitle>{words.title}</PageTitle>
        <code className="file-name">{webhook.data?.url}</code>
        <select
          aria-label={words.status}
          value={status ?? ''}
          onChange={({ target }) => {
            const next = WebhookDeliveryStatus.safeParse(target.value)
            void navigate({ search: next.success ? { status: next.data } : {}, replace: true })
          }}
        >
          <option value="">{words.anyStatus}</option>
          {WebhookDeliveryStatus.options.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </header>
      <Pending query={deliveries} />
      {deliveries.data && all.length === 0 && <Empty title={status ? words.noneFound : words.empty} guide="webhooks" />}
      {all.length > 0 && <DeliveryTable deliveries={all} onShow={setShown} onSent={() => void deliveries.refetch()} />}
      {deliveries.hasNextPage && (
        <button type="button" disabled={deliveries.isFetchingNextPage} onClick={() => void deliveries.fetchNextPage()}>
          {common.more}
        </button>
      )}
      {shown && <DeliveryDetails delivery={shown} onClose={() => setShown(undefined)} />}
    </>
  )
}

interface DeliveryTableProps {
  readonly deliveries: readonly WebhookDelivery[]
  readonly onShow: (delivery: WebhookDelivery) => void
  readonly onSent: () => void
}

function DeliveryTable({ deliveries, onShow, onSent }: DeliveryTableProps) {
  const redeliver = useMutation({
    mutationFn: ({ id, webhook_id }: WebhookDelivery) =>
      call(redeliverWebhook, { params: { id: webhook_id, delivery_id: id } }),
    onSuccess: onSent,
  })
  return (
    <>
      <Failure error={redeliver.error} />
      <StackedTable label={words.title} columns={words.columns}>
        {deliveries.map((delivery) => (
          <tr key={delivery.id}>
            <td data-title={words.columns[0]}>
              {delivery.event_type}
              {delivery.redelivery_of !== undefined && <p className="quiet">{words.redelivery}</p>}
            </td>
            <td data-title={words.columns[1]}>
              <Badge tone={tones[delivery.status]}>{delivery.status}</Badge>
            </td>
            <td data-title={words.columns[2]}>
              <Answer delivery={delivery} />
            </td>
            <td data-title={words.columns[3]}>{delivery.attempt_count}</td>
            <td data-title={words.columns[4]}>
              {delivery.next_attempt_at ? timeText(delivery.next_attempt_at) : common.none}
            </td>
            <td data-title={words.columns[5]}>
              <Age since={delivery.created_at} />
            </td>
            <td data-title={words.columns[6]}>
              <div className="chips" role="group" aria-label={delivery.id}>
                <button type="button" className="small" onClick={() => onShow(delivery)}>
                  {words.details}
                </button>
                <button
                  type="button"
                  className="small"
                  disabled={redeliver.isPending}
                  onClick={() => redeliver.mutate(delivery)}
                >
                  {words.redeliver}
                </button>
              </div>
            </td>
          </tr>
        ))}
      </StackedTable>
    </>
  )
}

const tones: Readonly<Record<WebhookDeliveryStatus, string>> = {
  pending: 'warn',
  succeeded: 'good',
  failed: 'bad',
  canceled: 'plain',
}

function Answer({ delivery: { response_status, duration_ms, error } }: { readonly delivery: WebhookDelivery }) {
  if (response_status !== undefined) return words.answer(response_status, duration_ms)
  return error ?? common.none
}
