import type { WebhookAttempt, WebhookDelivery } from '@berth/contract/webhooks/webhook.ts'
import { getWebhookDelivery } from '@berth/contract/webhooks/webhook-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { listKey } from '../../api/list-key.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Pending } from '../../components/feedback.tsx'
import { timeText } from '../../components/format.tsx'
import { words } from '../../strings/webhook.ts'

interface DeliveryDetailsProps {
  readonly delivery: WebhookDelivery
  readonly onClose: () => void
}

/** The attempts of a delivery, and the payload. */
export function DeliveryDetails({ delivery, onClose }: DeliveryDetailsProps) {
  const { id, webhook_id, event_type } = delivery
  const details = useQuery({
    queryKey: [...listKey('deliveries'), webhook_id, 'one', id],
    queryFn: () => call(getWebhookDelivery, { params: { id: webhook_id, delivery_id: id } }),
    staleTime: 0,
  })
  return (
    <Dialog title={words.detailsOf(event_type)} onClose={onClose} isWide>
      {details.data ? (
        <>
          <h3>{words.attempts}</h3>
          <Attempts attempts={details.data.attempts} />
          <Payload text={JSON.stringify(details.data.payload, undefined, 2)} />
        </>
      ) : (
        <Pending query={details} />
      )}
    </Dialog>
  )
}

function Attempts({ attempts }: { readonly attempts: readonly WebhookAttempt[] }) {
  if (attempts.length === 0) return <p className="quiet">{words.noAttempts}</p>
  return (
    <ul className="files">
      {attempts.map(({ at, response_status, duration_ms, error, response_body }) => (
        <li key={at}>
          <time dateTime={at}>{timeText(at)}</time>
          <span>
            {response_status === undefined ? (error ?? words.noAnswer) : words.answer(response_status, duration_ms)}
          </span>
          {response_body && <code className="file-name">{response_body}</code>}
        </li>
      ))}
    </ul>
  )
}

function Payload({ text }: { readonly text: string }) {
  return (
    <section className="snippet" aria-label={words.payload}>
      <header>
        <h3>{words.payload}</h3>
        <CopyButton text={text} />
      </header>
      <pre tabIndex={0}>{text}</pre>
    </section>
  )
}
