import type { Refusal, Request } from './transport.js'

/** What to do with a hold. 'finish' captures and returns the rest. */
export type Action = 'capture' | 'finish' | 'release' | 'extend'

/** One change at the service. Its key and body stay the same over all attempts, so that it takes effect once. */
export interface LocalOperation {
  request: Request
  do?: Action
  amount: number // what it charges
  tries: number
  first: number // start of the first attempt
  wait: number // after the last attempt, which failed
  retry: number // when to try again
}

/** The service's own answer about an operation. Of the service's times only differences are used. */
export interface LocalAnswer {
  refusal: Refusal | undefined
  afterMs: number
  end: number // the hold lives at least until then, by this process's clock
  reset: number // the period ends about then; 0 = unknown
  available: number
  charged: number
  shortfall: number
  remaining: number
}

/** Reports whether the balance has too few units. */
export const isExhausted = (a: LocalAnswer): boolean => a.refusal?.code === 'quota_exceeded' || a.refusal?.code === 'credits_exhausted'

/** Reports whether the service has no such hold any more. */
export const isEnded = (a: LocalAnswer): boolean => a.refusal?.code === 'hold_not_active' || a.refusal?.code === 'hold_not_found'

/** A hold of the service that this process spends. Times are milliseconds of the monotonic clock. */
export class LocalHold {
  taken = 0 // at most size
  captured = 0 // by answered captures; at most taken
  asked = 0 // captured and in the capture that is under way
  since = 0 // when the oldest taken unit beyond asked was taken
  renew = 0 // when to extend it
  old = 0 // when it still was not extended: other units are asked for
  stop = 0 // when takes from it end, so that there is time to capture them before the service ends the hold
  reset = 0 // end of the period that pays it, 0 = none
  touched = false // there was a take since it was made or extended
  ending = false // no more takes: its last operation is due
  changes = 0 // operations on it so far; numbers their keys
  op: LocalOperation | undefined

  /** size: units; 0 if it is not known whether the hold exists. */
  constructor(
    readonly id: string,
    public size: number,
  ) {}

  /** Sets when the hold is extended and stopped. The service keeps it at least until end. */
  lasts(end: number, ttl: number): void {
    this.renew = end - ttl / 2
    this.old = end - ttl / 3
    this.stop = end - ttl / 6
  }

  /** Returns the units that can be taken. */
  free(now: number): number {
    return this.ending || now >= this.stop ? 0 : this.size - this.taken
  }

  /** Takes n units. Returns true if the settler has something new to do. */
  take(n: number, now: number): boolean {
    const first = this.taken === this.asked
    if (first) this.since = now
    this.taken += n
    this.touched = true
    return first || this.taken === this.size
  }

  /**
   * Returns what to do with the hold, or when to ask again. A hold that is spent, or is near its end, ends. One in use is extended when
   * half of its life is over, but not beyond the period that pays it: a hold would carry its units into the next one. One not in use is
   * returned then.
   */
  next(now: number, ttl: number, captureEvery: number, closing: boolean): Action | number {
    const extendable = this.touched && (this.reset === 0 || now + ttl <= this.reset)
    const idle = now >= this.renew && !this.touched
    if (closing || this.ending || idle || this.taken === this.size || now >= this.stop) {
      return this.taken > this.captured ? 'finish' : 'release'
    }
    if (now >= this.renew && extendable) return 'extend'
    let due = now < this.renew ? this.renew : this.stop
    if (this.taken > this.captured) {
      if (now >= this.since + captureEvery) return 'capture'
      due = Math.min(due, this.since + captureEvery)
    }
    return due
  }
}

// One hold takes at most this part of the remaining units: 1 / share. So the last units of a balance are spread over those that ask.
const share = 4

/** Decides how many units a hold gets. */
export class Sizing {
  chunk = 0 // size of the last hold
  missing = 0 // what the largest refused take lacked since
  remaining: number | undefined // what the balance had after the last answer
  #rate = 0 // taken units per second
  #taken = 0 // at the last hold
  #at = 0 // of the last hold

  constructor(
    readonly min: number,
    readonly max: number,
    now: number,
  ) {
    this.#at = now
  }

  /** Returns the number of free units below which more are asked for: half a second's, with the rate that made the last hold. */
  low(): number {
    return Math.ceil(this.chunk / 2)
  }

  miss(n: number): void {
    this.missing = Math.max(this.missing, n)
  }

  /**
   * Returns the size of the next hold: what is used in a second, by the average of the last holds, twice the last one if that was spent
   * too early, and not more than a share of what remains. It is at least what the largest refused take lacked.
   */
  next(taken: number, now: number): number {
    const elapsed = Math.max(now - this.#at, 1) / 1000
    this.#rate = (this.#rate + (taken - this.#taken) / elapsed) / 2
    this.#taken = taken
    this.#at = now
    let want = Math.floor(Math.min(this.#rate, this.max))
    if (this.missing > 0) want = Math.max(want, Math.min(this.chunk, Math.floor(this.max / 2)) * 2)
    return this.#cut(Math.min(Math.max(want, this.min), this.max))
  }

  /** Returns the size of another attempt after the service refused the last one with so many units left; 0: none makes sense. */
  smaller(available: number): number {
    if (available < 1 || available < this.missing || available >= this.chunk) return 0
    this.remaining = available
    return this.#cut(this.chunk)
  }

  /** Limits a hold to its share of what remains. */
  #cut(want: number): number {
    if (this.remaining !== undefined) want = Math.min(want, Math.floor(Math.max(this.remaining, 0) / share) + 1)
    this.chunk = Math.max(want, this.missing)
    return this.chunk
  }
}
