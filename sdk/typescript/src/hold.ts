import type { Client, FailOpenOption } from './client.js'
import { newKey, sha256 } from './crypto.js'
import { ConflictError, ForbiddenError, DeniedError, NotFoundError, isQuotaError } from './errors.js'
import type { Answer, CallOptions, HoldAnswer, HoldRequest, Item } from './types.js'

/** What to hold. The id of the hold is also the key of the operation; without it a new one is made. */
export type HoldInit = Omit<HoldRequest, 'hold_id' | 'dry_run'> & { hold_id?: string }

/** What a finished hold has charged, in units over all its items. */
export interface HoldResult {
  used: number
  charged: number
  /** Used, and not covered by the balance. */
  shortfall: number
}

// A crashed process keeps its units from others for so long. A hold in use is extended at half of it.
const defaultTtl = 300

/** Returns a hold. If its meters fail open and the service does not decide, the hold reserves nothing and debits at its end. @internal */
export async function openHold(client: Client, init: HoldInit, options: (CallOptions & FailOpenOption) | undefined): Promise<Hold> {
  const { failOpen, ...callOptions } = options ?? {}
  const hold_id = init.hold_id ?? callOptions.idempotencyKey ?? `hold-${await newKey()}`
  const body: HoldRequest = { ttl_seconds: defaultTtl, ...init, hold_id }
  const ask = async (): Promise<Hold> =>
    new Hold(client, body, await client.call('hold', { body }, { ...callOptions, idempotencyKey: callOptions.idempotencyKey ?? hold_id }))
  return client.deciding('hold', body, client.failsOpen(body.items, failOpen), ask, () => new Hold(client, body, undefined))
}

/** Units that are reserved for one piece of work. `finish` or `release` it: until then it is extended, and keeps its units from others. */
export class Hold {
  readonly id: string
  readonly tenant: string
  /** The service's answer; undefined if the hold failed open. */
  readonly answer: Answer<HoldAnswer> | undefined
  readonly #client: Client
  readonly #body: HoldRequest
  readonly #used = new Map<string, number>()
  readonly #extender: ReturnType<typeof setInterval> | undefined
  #end: Promise<HoldResult> | undefined

  /** @internal */
  constructor(client: Client, body: HoldRequest, answer: Answer<HoldAnswer> | undefined) {
    this.#client = client
    this.#body = body
    this.id = body.hold_id
    this.tenant = body.tenant
    this.answer = answer
    for (const item of body.items) this.#used.set(item.meter, 0)
    if (answer) {
      const every = Math.max(((body.ttl_seconds ?? defaultTtl) * 1000) / 2, 500)
      this.#extender = setInterval(() => void client.background(this.#extend(every)), every)
      ;(this.#extender as { unref?: () => void }).unref?.()
    }
  }

  /** The hold reserved nothing, because the service did not decide. What is used is debited at the end, as far as the balance covers it. */
  get failedOpen(): boolean {
    return this.answer === undefined
  }

  /** Units used so far. */
  get used(): number {
    return sum(this.#used.values())
  }

  /** Held units that are not used. */
  get left(): number {
    return Math.max(sum(this.#body.items.map((item) => item.amount - (this.#used.get(item.meter) ?? 0))), 0)
  }

  /** Counts used units, 0 or more, of a meter of the hold; of the first one without a name. It sends no request. */
  use(amount: number, meter: string = this.#body.items[0]?.meter ?? ''): void {
    if (this.#end) throw new Error(`hold ${this.id} has ended`)
    const before = this.#used.get(meter)
    if (before === undefined) throw new TypeError(`meter ${meter} is not held`)
    if (!Number.isSafeInteger(amount) || amount < 0) throw new RangeError(`amount must be an integer of 0 or more, got ${amount}`)
    this.#used.set(meter, before + amount)
  }

  /**
   * Passes a stream on and counts its chunks by `cost`. At its end, at an error, and if the reader stops early, what was passed is
   * captured and the rest is returned.
   */
  async *stream<T>(source: AsyncIterable<T>, cost: (chunk: T) => number): AsyncGenerator<T, void, undefined> {
    let failed = false
    try {
      for await (const chunk of source) {
        this.use(cost(chunk))
        yield chunk
      }
    } catch (error) {
      failed = true
      throw error
    } finally {
      if (failed) await this.#client.background(this.finish())
      else await this.finish()
    }
  }

  /**
   * Captures what was used, and returns the rest. Use beyond the held units is charged as far as the balance covers it. If the hold has
   * expired, its use is debited. A second call returns the result of the first.
   */
  finish(): Promise<HoldResult> {
    return this.#finally(() => this.#finish())
  }

  /** Returns all units: nothing was used. */
  release(): Promise<HoldResult> {
    return this.#finally(async () => {
      this.#used.clear()
      return this.#release()
    })
  }

  #finally(end: () => Promise<HoldResult>): Promise<HoldResult> {
    if (!this.#end) {
      clearInterval(this.#extender)
      const result = end()
      this.#end = result
      // After a failure the end can be asked for again: the keys are the same, so it takes effect once.
      result.catch(() => (this.#end = undefined))
    }
    return this.#end
  }

  async #finish(): Promise<HoldResult> {
    const used = this.#items((item) => this.#used.get(item.meter) ?? 0)
    if (this.failedOpen) return this.#debit(used, 'late', 0)
    if (used.length === 0) return this.#release()
    try {
      await this.#capture(used, 'capture')
      return { used: this.used, charged: this.used, shortfall: 0 }
    } catch (error) {
      if (ended(error)) return this.#debit(used, 'late', 0)
      const beyond = this.#items((item) => Math.max((this.#used.get(item.meter) ?? 0) - item.amount, 0))
      if (beyond.length === 0 || !(error instanceof DeniedError || error instanceof ForbiddenError)) throw error
      return this.#cut(beyond)
    }
  }

  /** Captures the held part of the use, and debits what is beyond it. */
  async #cut(beyond: Item[]): Promise<HoldResult> {
    const held = this.#items((item) => Math.min(this.#used.get(item.meter) ?? 0, item.amount))
    try {
      await this.#capture(held, 'capture-held')
    } catch (error) {
      if (!ended(error)) throw error
      return this.#debit(this.#items((item) => this.#used.get(item.meter) ?? 0), 'late', 0)
    }
    return this.#debit(beyond, 'beyond', total(held))
  }

  #items(amount: (item: Item) => number): Item[] {
    return this.#body.items.map((item) => ({ meter: item.meter, amount: amount(item) })).filter((item) => item.amount > 0)
  }

  async #capture(items: Item[], suffix: string): Promise<void> {
    await this.#client.call('captureHold', { hold_id: this.id, body: { tenant: this.tenant, items, final: true } }, { idempotencyKey: await this.#key(suffix) })
  }

  async #release(): Promise<HoldResult> {
    if (!this.failedOpen) {
      try {
        await this.#client.call('releaseHold', { hold_id: this.id, body: { tenant: this.tenant } }, { idempotencyKey: await this.#key('release') })
      } catch (error) {
        if (!ended(error)) throw error
      }
    }
    return { used: 0, charged: 0, shortfall: 0 }
  }

  /** Debits use that no hold pays, as far as the balance covers it. */
  async #debit(items: Item[], suffix: string, charged: number): Promise<HoldResult> {
    if (items.length === 0) return { used: 0, charged, shortfall: 0 }
    const { subject, metadata } = this.#body
    const body = { tenant: this.tenant, items, mode: 'best_effort' as const, ...(subject === undefined ? {} : { subject }), ...(metadata === undefined ? {} : { metadata }) }
    try {
      const answer = await this.#client.call('debit', { body }, { idempotencyKey: await this.#key(suffix) })
      return {
        used: this.used,
        charged: charged + sum(answer.items.map((item) => item.charged)),
        shortfall: sum(answer.items.map((item) => item.shortfall)),
      }
    } catch (error) {
      if (!(error instanceof DeniedError || error instanceof ForbiddenError)) throw error
      return { used: this.used, charged, shortfall: total(items) }
    }
  }

  async #extend(every: number): Promise<void> {
    if (this.#end) return
    try {
      await this.#client.call(
        'extendHold',
        { hold_id: this.id, body: { tenant: this.tenant, ttl_seconds: this.#body.ttl_seconds ?? defaultTtl } },
        { deadlineMs: every },
      )
    } catch (error) {
      if (ended(error)) {
        clearInterval(this.#extender)
        if (this.#end) return
      }
      throw error
    }
  }

  /** The keys follow from the id, so an end that is asked for again takes effect once. A long id is hashed: a key has 255 characters. */
  async #key(suffix: string): Promise<string> {
    return `${this.id.length <= 200 ? this.id : await sha256(this.id)}-${suffix}`
  }
}

/** Reports whether the service has no such hold any more. */
function ended(error: unknown): boolean {
  return (error instanceof ConflictError || error instanceof NotFoundError) && (isQuotaError(error, 'hold_not_active') || isQuotaError(error, 'hold_not_found'))
}

const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0)
const total = (items: Item[]): number => sum(items.map((item) => item.amount))
