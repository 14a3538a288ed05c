import { backoff, longestTimerMs, retryAfterMs } from './backoff.js'
import { newKey } from './crypto.js'
import { isEnded, isExhausted, LocalHold, Sizing, type Action, type LocalAnswer, type LocalOperation } from './local-hold.js'
import { quietly, Refusal, type Transport } from './transport.js'

/** Which balance is spent, and how. */
export interface LocalUnitsOptions {
  tenant: string
  meter: string
  /** Default: the tenant's balance alone. */
  subject?: string
  /** Units of one hold: its size follows the use of a second, from min to max. Default 100 and 10,000. A take is at most max. */
  min?: number
  max?: number
  /** How long the service keeps a hold: how long it can be spent in an outage, and how long a crashed process keeps its units. Default 60. */
  ttlSeconds?: number
  /** How long use stays uncaptured while the service answers: what a crash loses. Default 1,000. */
  captureEveryMs?: number
  /** Units that are granted without a hold while the service is away. They are debited later, as far as the balance covers them. Default 0. */
  unbackedMax?: number
  /** Largest wait between attempts. Default 2,000. */
  capMs?: number
  /** Called with every failed attempt and every refusal of the service. */
  onError?: (error: unknown) => void
}

/** Why a take got nothing. refilling: units are on their way. away: the service does not answer. exhausted: it refused to hold units. */
export type LocalReason = 'exhausted' | 'refilling' | 'away' | 'closed'

/** The error of a take that got nothing. */
export class LocalDenial extends Error {
  readonly reason: LocalReason
  /** Of the service's answer, if the reason is 'exhausted'. */
  readonly status: number
  readonly code: string
  readonly retryAfterMs: number

  constructor(reason: LocalReason, answer?: { status: number; code: string; detail: string; retryAfterMs: number }) {
    super(answer ? `${reason}: ${answer.detail}` : reason)
    this.name = 'LocalDenial'
    this.reason = reason
    this.status = answer?.status ?? 0
    this.code = answer?.code ?? ''
    this.retryAfterMs = answer?.retryAfterMs ?? 0
  }
}

/** Sums since the start, in units except for requests. After a close without error, taken = captured + debited + shortfall. */
export interface LocalStats {
  /** Granted by take. */
  taken: number
  /** Charged by captures of holds. */
  captured: number
  /** Charged by debits, because their hold had ended or they were granted without one. */
  debited: number
  /** Granted, and not covered by the balance when they were debited. */
  shortfall: number
  /** Granted and not charged yet: what a crash would lose now. */
  uncharged: number
  /** Held and not taken. */
  held: number
  /** Sent to the service. */
  requests: number
}

const maxAmount = Number.MAX_SAFE_INTEGER
const awayAfterMs = 1_000 // several times the slowest answer of a service that works
const maxHolds = 4 // two are in use at a steady rate; the others bridge slow captures
const deniedPauseMs = 1_000 // a denial answers for the service so long; a top-up is noticed after that
const defaultCloseMs = 10_000
const takeWaitMs = 60_000 // between two looks of takeWait; it is woken before

/**
 * Spends units of one balance in this process. It takes holds ahead, answers take from memory, captures what was used and returns the
 * rest. The recipe and its error bound: docs/recipes/local-units.md.
 */
export class LocalUnits {
  readonly #transport: Transport
  readonly #options: Complete
  readonly #abort = new AbortController() // of all requests: ends when close gives up
  readonly #settled: Promise<void>
  #id = ''
  #closed = false
  #holds: LocalHold[] = [] // all that are not settled, oldest first
  #filling = false // a hold is being asked for
  #filler: Promise<void> = Promise.resolve()
  #away = false // and the service does not answer
  #denial: LocalDenial | undefined // the service's last answer about a hold, if it refused
  #deniedUntil = 0 // no hold is asked for before
  #late = 0 // taken units that no hold pays; they are to be debited
  #debit: LocalOperation | undefined // the debit of late units that is under way or unanswered
  #debits = 0 // so far; numbers their keys
  readonly #wakers = new Set<() => void>() // of the settler, the filler and takeWait
  readonly #sizing: Sizing
  #stats = { taken: 0, captured: 0, debited: 0, shortfall: 0, requests: 0 }

  /** @internal Use client.localUnits. */
  constructor(transport: Transport, options: LocalUnitsOptions) {
    this.#transport = transport
    this.#options = complete(options)
    this.#sizing = new Sizing(this.#options.min, this.#options.max, now())
    this.#settled = this.#settle()
  }

  /** Takes n units, 1 to max, without a request. If this process holds too few, it takes none and throws a LocalDenial. */
  take(n = 1): void {
    const denial = this.tryTake(n)
    if (denial) throw denial
  }

  /** take that returns the denial in place of throwing it; undefined if the units were taken. */
  tryTake(n = 1): LocalDenial | undefined {
    const { max } = this.#options
    if (!Number.isSafeInteger(n) || n < 1 || n > max) throw new RangeError(`n must be an integer from 1 to ${max} (max), got ${n}`)
    if (this.#closed) return new LocalDenial('closed')
    const at = now()
    let free = 0
    let lasting = 0
    for (const h of this.#holds) {
      const units = h.free(at)
      free += units
      if (at < h.old) lasting += units
    }
    if (free < n) return this.#short(n, n - free, at)
    this.#stats.taken += n
    if (lasting - n < this.#sizing.low()) this.#askForUnits(at)
    let rest = n
    let news = false
    for (const h of this.#holds) {
      const part = Math.min(rest, h.free(at))
      if (part === 0) continue
      if (h.take(part, at)) news = true
      rest -= part
      if (rest === 0) break
    }
    if (news) this.#wake()
    return undefined
  }

  /** take that waits for units on their way: until they arrive, the service refuses, or the signal ends. */
  async takeWait(n = 1, signal?: AbortSignal): Promise<void> {
    for (;;) {
      signal?.throwIfAborted()
      const denial = this.tryTake(n)
      if (!denial) return
      if (!this.#filling) throw denial
      await this.#change(signal, takeWaitMs, true)
    }
  }

  /** The sums so far. */
  stats(): LocalStats {
    let uncharged = this.#late
    let held = 0
    for (const h of this.#holds) {
      uncharged += h.taken - h.captured
      held += h.free(now())
    }
    return { ...this.#stats, uncharged, held }
  }

  /**
   * Refuses further takes, captures what was used, and returns the rest to the balance. It gives up after withinMs and throws; the service
   * then returns the units when the holds expire.
   */
  async close(withinMs = defaultCloseMs): Promise<void> {
    if (!this.#closed) {
      this.#closed = true
      for (const h of this.#holds) if (h.op) h.op.retry = 0
      if (this.#debit) this.#debit.retry = 0
      this.#wake()
    }
    const timer = setTimeout(() => {
      this.#abort.abort(new Error('close gave up'))
      this.#wake()
    }, withinMs)
    await this.#settled
    clearTimeout(timer)
    const { uncharged } = this.stats()
    if (uncharged > 0 || this.#holds.length > 0) {
      throw new Error(`close local units in time: ${uncharged} used units were not charged, and ${this.#holds.length} holds are left to expire`)
    }
  }

  /** Answers a take of n units, of which so many are missing. */
  #short(n: number, missing: number, at: number): LocalDenial | undefined {
    this.#sizing.miss(missing)
    this.#askForUnits(at)
    if (this.#denial) return this.#denial
    if (!this.#away) return new LocalDenial('refilling')
    if (n > this.#options.unbackedMax - this.#late) return new LocalDenial('away')
    this.#late += n
    this.#stats.taken += n
    this.#wake()
    return undefined
  }

  #askForUnits(at: number): void {
    if (this.#filling || at < this.#deniedUntil) return
    this.#filling = true
    this.#filler = this.#refill().catch((error: unknown) => {
      this.#filling = false
      this.#report(error)
    })
  }

  /** Takes one hold. It tries until the service answers or the units are closed. */
  async #refill(): Promise<void> {
    const slowAt = now() + awayAfterMs
    while (this.#holds.length >= maxHolds && !this.#closed) {
      if (now() >= slowAt) this.#away = true // captures are not answered
      await this.#change(undefined, Math.max(slowAt - now(), deniedPauseMs / 4))
    }
    if (this.#closed) {
      this.#filling = false
      return
    }
    for (let units = this.#sizing.next(this.#stats.taken, now()); units > 0; ) {
      const hold = new LocalHold(`local-${await newKey()}`, units)
      const { tenant, meter, subject, ttlSeconds } = this.#options
      const body = { tenant, hold_id: hold.id, items: [{ meter, amount: units }], subject, ttl_seconds: ttlSeconds }
      const op = operation('/v1/holds', hold.id, body)
      const answer = await this.#untilAnswered(op)
      if (!answer) {
        this.#filling = false
        if (op.tries > 0) {
          // The service may have made the hold, so the settler returns it.
          hold.size = 0
          hold.ending = true
          this.#holds.push(hold)
        }
        break
      }
      units = this.#answered(hold, answer)
    }
    this.#wake()
  }

  /** Sends op until the service answers. Returns undefined if the units are closed first. */
  async #untilAnswered(op: LocalOperation): Promise<LocalAnswer | undefined> {
    for (;;) {
      const slow = unref(setTimeout(() => this.#setAway(), awayAfterMs))
      const answer = await this.#send(op)
      clearTimeout(slow)
      if (answer) return answer
      this.#setAway()
      const until = now() + op.wait
      while (!this.#closed && now() < until) await this.#change(undefined, until - now())
      if (this.#closed) return undefined
    }
  }

  #setAway(): void {
    if (!this.#filling) return
    this.#away = true
    this.#wake()
  }

  /** Notes the answer about a hold. Returns the size of the hold to ask for next, 0 for none. */
  #answered(h: LocalHold, a: LocalAnswer): number {
    this.#away = false
    const sizing = this.#sizing
    if (a.refusal) {
      const units = isExhausted(a) ? sizing.smaller(a.available) : 0
      if (units === 0) {
        const { status, code, message } = a.refusal
        this.#denial = new LocalDenial('exhausted', { status, code, detail: message, retryAfterMs: a.afterMs })
        this.#deniedUntil = now() + deniedPauseMs
        sizing.missing = 0
        sizing.remaining = isExhausted(a) ? a.available : undefined
        this.#filling = false
      }
      return units
    }
    h.lasts(a.end, this.#options.ttlMs)
    h.reset = a.reset
    this.#holds.push(h)
    sizing.missing = 0
    sizing.remaining = a.remaining
    this.#denial = undefined
    this.#filling = false
    return 0
  }

  /** Captures, extends, returns and debits: one operation at a time. It ends when the units are closed and nothing is left to do. */
  async #settle(): Promise<void> {
    this.#id = `local-${await newKey()}`
    while (!this.#abort.signal.aborted) {
      const next = this.#nextOperation()
      if (typeof next !== 'number') {
        const answer = await this.#send(next.op)
        if (answer) this.#done(next.hold, next.op, answer)
        continue
      }
      if (this.#closed) {
        await this.#filler
        if (this.#holds.length === 0 && this.#late === 0) return
        if (typeof this.#nextOperation() !== 'number') continue
      }
      await this.#change(undefined, next)
    }
    await this.#filler
  }

  /** Returns the operation to send now, and its hold unless it is a debit. Without one it returns how long to wait. */
  #nextOperation(): { hold: LocalHold | undefined; op: LocalOperation } | number {
    const at = now()
    const { ttlMs, captureEveryMs } = this.#options
    let due = ttlMs
    for (const hold of this.#holds) {
      if (!hold.op || (hold.op.do === 'extend' && at >= hold.stop)) {
        const action = hold.next(at, ttlMs, captureEveryMs, this.#closed)
        if (typeof action === 'number') {
          due = Math.min(due, action - at)
          continue
        }
        hold.op = this.#newChange(hold, action)
      }
      if (hold.op.retry <= at) return { hold, op: hold.op }
      due = Math.min(due, hold.op.retry - at)
    }
    if (!this.#debit && this.#late > 0) this.#debit = this.#newDebit()
    if (this.#debit) {
      if (this.#debit.retry <= at) return { hold: undefined, op: this.#debit }
      due = Math.min(due, this.#debit.retry - at)
    }
    return Math.max(due, 0)
  }

  /** Returns the operation that does something with a hold. Its key is the hold's id and the number of the change. */
  #newChange(h: LocalHold, action: Action): LocalOperation {
    const { tenant, meter, ttlSeconds } = this.#options
    const key = `${h.id}-${++h.changes}`
    const path = `/v1/holds/${h.id}/`
    let op: LocalOperation
    if (action === 'extend') {
      h.touched = false
      op = operation(`${path}extend`, key, { tenant, ttl_seconds: ttlSeconds })
    } else if (action === 'release') {
      h.ending = true
      op = operation(`${path}release`, key, { tenant })
    } else {
      const amount = h.taken - h.captured
      const final = action === 'finish'
      h.asked = h.taken
      h.ending ||= final
      op = operation(`${path}capture`, key, { tenant, items: [{ meter, amount }], final }, amount)
    }
    op.do = action
    return op
  }

  /** Returns the debit of all late units. It never takes more than the balance has. */
  #newDebit(): LocalOperation {
    const { tenant, meter, subject } = this.#options
    const amount = this.#late
    return operation('/v1/debits', `${this.#id}-${++this.#debits}`, { tenant, items: [{ meter, amount }], subject, mode: 'best_effort' }, amount)
  }

  /** Notes the answer to an operation on a hold, or to a debit. */
  #done(h: LocalHold | undefined, op: LocalOperation, a: LocalAnswer): void {
    if (a.refusal && (!h || (!isEnded(a) && !isExhausted(a)))) {
      // Only an operator can mend it: a revoked key, a suspended tenant. It is tried again, as rarely as the back-off allows.
      this.#postpone(op, a.afterMs)
    } else if (!h) {
      this.#late -= op.amount
      this.#debit = undefined
      this.#stats.debited += a.charged
      this.#stats.shortfall += a.shortfall
    } else if (a.refusal) {
      // The hold ended before all that was taken from it was captured. The rest is debited.
      this.#late += h.taken - h.captured
      this.#remove(h)
    } else if (op.do === 'extend') {
      h.op = undefined
      h.lasts(a.end, this.#options.ttlMs)
    } else {
      h.op = undefined
      h.captured += op.amount
      this.#stats.captured += op.amount
      if (op.do !== 'capture') this.#remove(h)
    }
    this.#wake()
  }

  #remove(h: LocalHold): void {
    this.#holds = this.#holds.filter((other) => other !== h)
  }

  /** Makes one attempt. undefined: the outcome is unknown, or a later attempt may succeed; op.wait says how long to wait. */
  async #send(op: LocalOperation): Promise<LocalAnswer | undefined> {
    let began = now()
    if (op.tries === 0) op.first = began
    op.tries++
    this.#stats.requests++
    try {
      const { headers, text } = await this.#transport.send(op.request, { signal: this.#abort.signal })
      const body = JSON.parse(text) as { expires_at?: string; as_of?: string; items?: { charged?: number; shortfall?: number; remaining?: number }[] }
      // A hold that is returned again was made at the first attempt or later.
      if (headers.get('idempotent-replayed') === 'true') began = op.first
      const item = body.items?.[0]
      const reset = headers.get('x-quota-reset')
      return {
        refusal: undefined,
        afterMs: 0,
        end: began + (Date.parse(body.expires_at ?? '') - Date.parse(body.as_of ?? '') || 0),
        reset: reset === null ? 0 : began + Number(reset) * 1000,
        available: 0,
        charged: item?.charged ?? 0,
        shortfall: item?.shortfall ?? 0,
        remaining: item?.remaining ?? 0,
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#report(error instanceof Refusal ? error.error(op.tries) : error)
      if (error instanceof Refusal && isFinal(error)) {
        const available = (error.problem && 'available' in error.problem && error.problem.available) || 0
        return { refusal: error, afterMs: retryAfterMs(error.headers), end: 0, reset: 0, available, charged: 0, shortfall: 0, remaining: 0 }
      }
      this.#postpone(op, error instanceof Refusal ? retryAfterMs(error.headers) : 0)
      return undefined
    }
  }

  /** Says when to send op again. */
  #postpone(op: LocalOperation, afterMs: number): void {
    op.wait = backoff(op.tries, afterMs, this.#transport.retry.baseMs, this.#options.capMs)
    op.retry = now() + op.wait
  }

  #report(error: unknown): void {
    quietly(() => this.#options.onError(error))
  }

  /** Lets everybody look again who waits in #change. */
  #wake(): void {
    for (const waker of [...this.#wakers]) waker()
  }

  /**
   * Waits until something changes, for withinMs and longestTimerMs at most. Throws the signal's reason if it ends first. Those that a
   * caller waits for, close and takeWait, keep the process alive.
   */
  #change(signal: AbortSignal | undefined, withinMs: number, keepsAlive = this.#closed): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#wakers.delete(done)
      }
      const done = () => {
        leave()
        resolve()
      }
      const abort = () => {
        leave()
        reject(signal?.reason)
      }
      const timer = setTimeout(done, Math.min(withinMs, longestTimerMs))
      if (!keepsAlive) unref(timer)
      signal?.addEventListener('abort', abort, { once: true })
      this.#wakers.add(done)
    })
  }
}

/** Reports whether this is the service's own answer about the operation: 429 without units to blame asks to wait, and after 5xx the outcome is unknown. */
function isFinal(r: Refusal): boolean {
  if (r.code === 'quota_exceeded' || r.code === 'credits_exhausted') return true
  return r.problem !== undefined && r.status >= 400 && r.status < 500 && r.status !== 429
}

function operation(path: string, key: string, body: unknown, amount = 0): LocalOperation {
  const request = { operation: path, method: 'POST', path, body: JSON.stringify(body), key, repeatable: true }
  return { request, amount, tries: 0, first: 0, wait: 0, retry: 0 }
}

type Complete = Required<Omit<LocalUnitsOptions, 'subject'>> & { subject: string | undefined; ttlMs: number }

function complete(o: LocalUnitsOptions): Complete {
  const max = o.max ?? Math.max(10_000, o.min ?? 0)
  const min = o.min ?? Math.min(100, max)
  const { ttlSeconds = 60, captureEveryMs = 1_000, unbackedMax = 0, capMs = 2_000, onError = () => {} } = o
  for (const [ok, field, demand] of [
    [!!o.tenant, 'tenant', 'is required'],
    [!!o.meter, 'meter', 'is required'],
    [isWhole(max, 1, maxAmount), 'max', 'must be from 1 to 2^53 - 1'],
    [isWhole(min, 1, max), 'min', 'must be from 1 to max'],
    [isWhole(ttlSeconds, 1, 86_400), 'ttlSeconds', 'must be from 1 to 86400'],
    [captureEveryMs > 0, 'captureEveryMs', 'must be above 0'],
    [capMs > 0, 'capMs', 'must be above 0'],
    [isWhole(unbackedMax, 0, maxAmount), 'unbackedMax', 'must be from 0 to 2^53 - 1'],
  ] as const) {
    if (!ok) throw new RangeError(`localUnits: ${field} ${demand}`)
  }
  return { tenant: o.tenant, meter: o.meter, subject: o.subject, min, max, ttlSeconds, ttlMs: ttlSeconds * 1000, captureEveryMs, unbackedMax, capMs, onError }
}

const isWhole = (n: number, least: number, most: number): boolean => Number.isSafeInteger(n) && n >= least && n <= most

const now = (): number => performance.now()

function unref<T>(timer: T): T {
  ;(timer as { unref?: () => void }).unref?.()
  return timer
}
