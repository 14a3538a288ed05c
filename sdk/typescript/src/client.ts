import { newKey } from './crypto.js'
import { isQuotaError, QuotaError, UnavailableError } from './errors.js'
import { Hold, openHold, type HoldInit } from './hold.js'
import { LocalUnits, type LocalUnitsOptions } from './local-units.js'
import { operationTable } from './operations.gen.js'
import { quietly, Transport, type Request, type TransportOptions } from './transport.js'
import type {
  Answer,
  CallOptions,
  CheckAnswer,
  CheckRequest,
  ConsumeRequest,
  DebitAnswer,
  DebitRequest,
  Input,
  Item,
  Meta,
  OperationName,
  Output,
  PagedItem,
  PagedName,
  RefundAnswer,
  RefundRequest,
} from './types.js'

/** A call that passed although the service did not decide. */
export interface FailOpenEvent {
  operation: string
  tenant: string
  /** The items that were not charged. */
  items: Item[]
  error: QuotaError
}

/** Options of a client. */
export interface ClientOptions extends TransportOptions {
  /**
   * What to do while the service does not decide: true lets a call pass, uncharged. By meter, or one answer for all. A call passes only if
   * all of its meters do. Default false.
   */
  failOpen?: boolean | Record<string, boolean>
  /** Called for each call that passes like this, for metrics. */
  onFailOpen?: (event: FailOpenEvent) => void
  /** Called if work in the background fails: a refund after a failed handler, the extension of a hold. */
  onBackgroundError?: (error: unknown) => void
}

/** The operations of the contract by their operationId. */
export type Api = {
  [K in OperationName]: (
    ...args: {} extends Input<K> ? [input?: Input<K>, options?: CallOptions] : [input: Input<K>, options?: CallOptions]
  ) => Promise<Output<K> extends undefined ? undefined : Answer<Output<K>>>
}

/** What a decision is asked about. A feature alone has no items, and never fails open by meter. */
interface Asked {
  tenant: string
  items?: Item[]
}

// After so many calls in a row without a decision, calls that may fail open do so at once, except one each probeEveryMs.
const awayAfter = 5
const probeEveryMs = 1_000

/** A client of quotasvc. Share one in a process: its retry budget counts all its calls. */
export class Client {
  /** Every operation of the contract, by its operationId: `client.api.getBalance({tenant: 'acme', meter: 'api_calls'})`. */
  readonly api: Api
  /** @internal */
  readonly transport: Transport
  readonly #failOpen: boolean | Record<string, boolean>
  readonly #onFailOpen: (event: FailOpenEvent) => void
  readonly #onBackgroundError: (error: unknown) => void
  readonly #background = new Set<Promise<unknown>>()
  #undecided = 0
  #probeAt = 0

  constructor(options: ClientOptions = {}) {
    this.transport = new Transport(options)
    this.#failOpen = options.failOpen ?? false
    this.#onFailOpen = options.onFailOpen ?? (() => {})
    this.#onBackgroundError = options.onBackgroundError ?? (() => {})
    const api: Record<string, unknown> = {}
    for (const name of Object.keys(operationTable) as OperationName[]) {
      api[name] = (input: Input<typeof name>, callOptions?: CallOptions) => this.call(name, input, callOptions)
    }
    this.api = api as Api
  }

  /** Asks whether a consume would be allowed, and charges nothing. A denial is an answer with `allowed: false`. */
  check(body: CheckRequest, options?: CallOptions & FailOpenOption): Promise<Answer<CheckAnswer>> {
    return this.#decide('check', body, options, () => ({
      allowed: true,
      items: (body.items ?? []).map((item) => ({ meter: item.meter, required: item.amount, remaining: 0, limit: 0, max_allowed_now: 0 })),
      limits: [],
      source: 'local',
      degraded: true,
      as_of: new Date().toISOString(),
    })) as Promise<Answer<CheckAnswer>>
  }

  /** Charges the rate limits and debits the balance, or neither. A denial is a DeniedError. */
  consume(body: ConsumeRequest, options?: CallOptions & FailOpenOption): Promise<Answer<DebitAnswer>> {
    return this.#decide('consume', body, options, () => uncharged(body)) as Promise<Answer<DebitAnswer>>
  }

  /** Debits the balance without asking the rate limits. A denial is a DeniedError. */
  debit(body: DebitRequest, options?: CallOptions & FailOpenOption): Promise<Answer<DebitAnswer>> {
    return this.#decide('debit', body, options, () => uncharged(body)) as Promise<Answer<DebitAnswer>>
  }

  /** Takes back a debit or a capture, in full or in part. */
  refund(body: RefundRequest, options?: CallOptions): Promise<Answer<RefundAnswer>> {
    return this.call('refund', { body }, options)
  }

  /** Consumes, then does the work. If the work throws, the operation is refunded before the error is thrown on. */
  async consumeFor<T>(body: ConsumeRequest, work: (answer: Answer<DebitAnswer>) => Promise<T> | T, options?: CallOptions & FailOpenOption): Promise<T> {
    const answer = await this.consume(body, options)
    try {
      return await work(answer)
    } catch (error) {
      if (!answer.meta.failedOpen) await this.background(this.undo(body.tenant, answer.operation_id))
      throw error
    }
  }

  /** Holds units for work of unknown cost: `use` counts, `finish` captures what was used and returns the rest. */
  async hold(init: HoldInit, options?: CallOptions & FailOpenOption): Promise<Hold> {
    return openHold(this, init, options)
  }

  /** Holds units, does the work, and captures what it used, also if it throws. The rest is returned. */
  async holdFor<T>(init: HoldInit, work: (hold: Hold) => Promise<T> | T, options?: CallOptions & FailOpenOption): Promise<T> {
    const hold = await this.hold(init, options)
    let result: T
    try {
      result = await work(hold)
    } catch (error) {
      await this.background(hold.finish())
      throw error
    }
    await hold.finish()
    return result
  }

  /** Spends units of one balance in this process: a hold pays many decisions, and none of them needs a request. Close it at the end. */
  localUnits(options: LocalUnitsOptions): LocalUnits {
    return new LocalUnits(this.transport, options)
  }

  /** All items of an operation that answers in pages: `for await (const entry of client.list('listEntries', {tenant: 'acme'}))`. */
  async *list<K extends PagedName>(name: K, input: Omit<Input<K>, 'cursor'>, options?: CallOptions): AsyncGenerator<PagedItem<K>, void, undefined> {
    for (let cursor: string | undefined; ; ) {
      const page = (await this.call(name, { ...input, cursor } as Input<K>, options)) as unknown as { items: PagedItem<K>[]; next_cursor: string | null }
      yield* page.items
      if (page.next_cursor === null || page.next_cursor === cursor) return
      cursor = page.next_cursor
    }
  }

  /** Refunds what an operation charged. That it charged nothing, or was refunded before, is no error. */
  async undo(tenant: string, operationId: string, options?: CallOptions): Promise<void> {
    const idempotencyKey = operationId.length <= 250 ? `undo-${operationId}` : await newKey()
    try {
      await this.refund({ tenant, operation_id: operationId }, { idempotencyKey, ...options })
    } catch (error) {
      if (!isQuotaError(error, 'operation_not_found') && !isQuotaError(error, 'refund_exceeds_debit')) throw error
    }
  }

  /** Waits for refunds and other work in the background, for a clean end of the process. */
  async flush(): Promise<void> {
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  /** Lets work go on in the background. The returned promise never rejects: errors go to onBackgroundError. */
  background(work: Promise<unknown>): Promise<void> {
    const done: Promise<void> = work
      .then(
        () => {},
        (error: unknown) => quietly(() => this.#onBackgroundError(error)),
      )
      .finally(() => this.#background.delete(done))
    this.#background.add(done)
    return done
  }

  /** Calls an operation of the contract by its operationId. */
  async call<K extends OperationName>(name: K, input?: Input<K>, options: CallOptions = {}): Promise<Output<K> extends undefined ? undefined : Answer<Output<K>>> {
    const request = newRequest(name, (input ?? {}) as Record<string, unknown>)
    const { key, safe } = operationTable[name]
    if (key) request.key = options.idempotencyKey ?? (await newKey())
    else if (options.idempotencyKey !== undefined) throw new TypeError(`${name} takes no idempotencyKey`)
    if (request.key !== '' && !/^[!-~]{1,255}$/.test(request.key)) throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters')
    request.repeatable = safe || key
    const reply = await this.transport.do(request, options)
    const json = reply.headers.get('content-type')?.includes('json') ?? false
    const value: unknown = reply.text === '' ? undefined : json ? JSON.parse(reply.text) : reply.text
    const meta: Meta = {
      status: reply.status,
      headers: reply.headers,
      requestId: reply.headers.get('x-request-id') ?? '',
      attempts: reply.attempts,
      idempotencyKey: request.key,
      replayed: reply.headers.get('idempotent-replayed') === 'true',
      failedOpen: false,
    }
    return withMeta(value, meta) as never
  }

  /** Reports whether calls about these items pass while the service does not decide. @internal */
  failsOpen(items: Item[], option?: boolean): boolean {
    if (option !== undefined) return option
    const rule = this.#failOpen
    return typeof rule === 'boolean' ? rule : items.length > 0 && items.every((item) => Object.hasOwn(rule, item.meter) && rule[item.meter] === true)
  }

  /** Calls an operation that decides. If its meters fail open, it passes while the service does not decide. */
  async #decide(name: 'check' | 'consume' | 'debit', body: Asked, options: (CallOptions & FailOpenOption) | undefined, open: () => unknown): Promise<unknown> {
    const { failOpen, ...callOptions } = options ?? {}
    const work = () => this.call(name, { body } as never, callOptions)
    return this.deciding(name, body, this.failsOpen(body.items ?? [], failOpen), work, (error) => withMeta(open(), metaOf(error)))
  }

  /** Does work that asks the service for a decision. If it may fail open and there is none, the answer is open(error). @internal */
  async deciding<T>(operation: string, body: Asked, failOpen: boolean, work: () => Promise<T>, open: (error: QuotaError) => T): Promise<T> {
    const pass = (error: QuotaError) => {
      quietly(() => this.#onFailOpen({ operation, tenant: body.tenant, items: body.items ?? [], error }))
      return open(error)
    }
    if (failOpen && this.#undecided >= awayAfter) {
      if (Date.now() < this.#probeAt) return pass(new UnavailableError({ status: 0, code: 'no_answer', detail: 'the service did not answer the last calls' }))
      this.#probeAt = Date.now() + probeEveryMs
    }
    try {
      const answer = await work()
      this.#undecided = 0
      return answer
    } catch (error) {
      if (!(error instanceof UnavailableError)) {
        if (error instanceof QuotaError) this.#undecided = 0
        throw error
      }
      if (++this.#undecided === awayAfter) this.#probeAt = Date.now() + probeEveryMs
      if (!failOpen) throw error
      return pass(error)
    }
  }
}

/** What one call does while the service does not decide; it overrides the client's failOpen. */
export interface FailOpenOption {
  failOpen?: boolean
}

function newRequest(name: OperationName, input: Record<string, unknown>): Request {
  const { method, path, query } = operationTable[name]
  const rest = { ...input }
  const body = rest.body
  delete rest.body
  let filled = path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const value = rest[parameter]
    delete rest[parameter]
    if (value === undefined || value === '') throw new TypeError(`${name}: ${parameter} is required`)
    return encodeURIComponent(text(value))
  })
  const search = new URLSearchParams()
  for (const parameter of query as readonly string[]) {
    const value = rest[parameter]
    if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
      for (const [member, wanted] of Object.entries(value)) search.set(`${parameter}.${member}`, text(wanted))
    } else if (value !== undefined) search.set(parameter, text(value))
    delete rest[parameter]
  }
  const [unknown] = Object.entries(rest).find(([, value]) => value !== undefined) ?? []
  if (unknown !== undefined) throw new TypeError(`${name} has no parameter ${unknown}`)
  const asked = search.toString()
  if (asked !== '') filled += `?${asked}`
  return { operation: name, method, path: filled, body: body === undefined ? undefined : JSON.stringify(body), key: '', repeatable: false }
}

function text(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value)
}

function withMeta<T>(value: T, meta: Meta): T {
  if (typeof value === 'object' && value !== null) Object.defineProperty(value, 'meta', { value: meta, enumerable: false })
  return value
}

function metaOf(error: QuotaError): Meta {
  const { httpStatus, headers, requestId, attempts, idempotencyKey } = error
  return { status: 0, headers: httpStatus === 0 ? headers : new Headers(), requestId, attempts, idempotencyKey, replayed: false, failedOpen: true }
}

function uncharged(body: Asked): DebitAnswer {
  return {
    operation_id: '',
    tenant: body.tenant,
    items: (body.items ?? []).map((item) => ({ meter: item.meter, requested: item.amount, charged: 0, shortfall: item.amount, draws: [], remaining: 0 })),
    as_of: new Date().toISOString(),
  }
}
