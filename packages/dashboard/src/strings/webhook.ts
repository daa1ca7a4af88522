export const words = {
  title: 'Deliveries',
  all: 'All webhooks',
  status: 'Status',
  anyStatus: 'Any status',
  empty: 'No delivery yet.',
  noneFound: 'No delivery matches.',
  columns: ['Event', 'Status', 'Answer', 'Attempts', 'Next attempt', 'Age', 'Actions'],
  answer: (status: number, milliseconds: number | undefined) =>
    milliseconds === undefined ? String(status) : `${status} in ${milliseconds} ms`,
  redelivery: 'sent again',
  details: 'Details',
  detailsOf: (event: string) => `Delivery of ${event}`,
  redeliver: 'Send again',
  attempts: 'Attempts',
  noAttempts: 'No attempt yet.',
  noAnswer: 'no answer',
  payload: 'Payload',
}
