import type {
  EgressPolicy,
  EgressProbe,
  EgressProbeResult,
  EgressRoute,
} from '@berth/contract/egress/egress-endpoints.ts'

/** A request to a worker. */
export type WorkerRequest =
  | { readonly do: 'set-policy'; readonly policy: EgressPolicy }
  | { readonly do: 'put-machine'; readonly id: string; readonly route: EgressRoute }
  | { readonly do: 'delete-machine'; readonly id: string }
  | { readonly do: 'probe'; readonly probe: EgressProbe }

export interface NumberedRequest {
  readonly number: number
  readonly request: WorkerRequest
}

/** A message of a worker. `done` and `failed` answer the request with the same number. */
export type WorkerMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'done'; readonly number: number; readonly result?: EgressProbeResult }
  | { readonly type: 'failed'; readonly number: number; readonly reason: string }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'error'
      readonly facts: Readonly<Record<string, unknown>>
      readonly message: string
    }
