import type { components, operations } from './openapi.gen.js'
import type { operationTable } from './operations.gen.js'

/** The schemas of the contract, by name: Schemas['Balance']. */
export type Schemas = components['schemas']

export type Item = Schemas['Item']
export type CheckRequest = Schemas['CheckRequest']
export type CheckAnswer = Schemas['CheckAnswer']
export type ConsumeRequest = Schemas['ConsumeRequest']
export type DebitRequest = Schemas['DebitRequest']
export type DebitAnswer = Schemas['DebitAnswer']
export type DebitBatchAnswer = Schemas['DebitBatchAnswer']
export type HoldRequest = Schemas['HoldRequest']
export type HoldAnswer = Schemas['HoldAnswer']
export type RefundRequest = Schemas['RefundRequest']
export type RefundAnswer = Schemas['RefundAnswer']
export type Problem = Schemas['Problem']

/** An operationId of the contract. */
export type OperationName = keyof typeof operationTable

type Parameters<K extends OperationName, In extends 'path' | 'query'> = operations[K] extends { parameters: { [P in In]?: infer T } }
  ? [T] extends [undefined]
    ? unknown
    : NonNullable<T>
  : unknown

type Body<K extends OperationName> = operations[K] extends { requestBody: { content: { 'application/json': infer B } } }
  ? { body: B }
  : operations[K] extends { requestBody?: { content: { 'application/json': infer B } } }
    ? { body?: B }
    : unknown

/** The input of an operation: its path and query parameters side by side, and `body`. */
export type Input<K extends OperationName> = Parameters<K, 'path'> & Parameters<K, 'query'> & Body<K>

type Content<R> = R extends { content: { 'application/json': infer T } } ? T : never
type Responses<K extends OperationName> = operations[K]['responses']
type Success<K extends OperationName> = {
  [S in keyof Responses<K>]: S extends 200 | 201 | 202 ? Content<Responses<K>[S]> : never
}[keyof Responses<K>]

/** The JSON answer of an operation; undefined if it has none. */
export type Output<K extends OperationName> = [Success<K>] extends [never] ? undefined : Success<K>

/** The operations that answer in pages. */
export type PagedName = { [K in OperationName]: (typeof operationTable)[K]['pages'] extends true ? K : never }[OperationName]

/** An item of the pages of an operation. */
export type PagedItem<K extends PagedName> = Output<K> extends { items: (infer T)[] } ? T : never

/** What is known of an answer beside its body. */
export interface Meta {
  /** HTTP status; 0 if the call failed open. */
  status: number
  /** The answer's headers; those for callers' clients are X-Quota-*, RateLimit and RateLimit-Policy. */
  headers: Headers
  /** The service's id of the last attempt. */
  requestId: string
  /** How often the request was sent. */
  attempts: number
  /** The Idempotency-Key of the operation; empty if it has none. */
  idempotencyKey: string
  /** The service had done this operation before, and answered it again. */
  replayed: boolean
  /** The service did not decide: failOpen of the meters let it pass, and nothing was charged. */
  failedOpen: boolean
}

/** An answer of the service, as in the contract. `meta` is not enumerable: JSON.stringify leaves it out. */
export type Answer<T> = T & { readonly meta: Meta }

/** Options of one call. They override those of the client. */
export interface CallOptions {
  /** The key of the operation: 1 to 255 visible ASCII characters. Without it each call is a new operation. */
  idempotencyKey?: string
  /** The ETag that the object must still have. */
  ifMatch?: string
  /** Ends the call. Its reason is thrown. */
  signal?: AbortSignal
  /** Bounds one attempt. */
  timeoutMs?: number
  /** Bounds all attempts and waits of the call. */
  deadlineMs?: number
  /** Retry 429 within maxWaitMs. false: a denial is thrown at once. */
  retryDenied?: boolean
}
