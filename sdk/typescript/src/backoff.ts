/** Options of retries. */
export interface RetryOptions {
  /** Largest number of attempts of a call, the first one included. Default 5: enough for the restart of an instance or a failover. */
  attempts?: number
  /** Bound of the first random wait; it doubles with each retry. Default 100 ms: several times the service's latency. */
  baseMs?: number
  /** Largest bound of a random wait. Default 10 s. */
  capMs?: number
  /** Longest wait. If an answer asks for more, the call ends with it: a month's quota is no reason to wait. Default 30 s. */
  maxWaitMs?: number
  /** Retry 429 within maxWaitMs. Default true; middleware does not. */
  denied?: boolean
}

export const retryDefaults = { attempts: 5, baseMs: 100, capMs: 10_000, maxWaitMs: 30_000, denied: true }

/**
 * Returns the wait before a retry; the first retry has number 1. It is the service's Retry-After plus a random time from 0 to a bound
 * ("full jitter"). The bound doubles with each retry, up to capMs. So no caller retries too early, and callers with the same Retry-After
 * retry at different times.
 */
export function backoff(retry: number, afterMs: number, baseMs: number, capMs: number, random: () => number = Math.random): number {
  const bound = Math.min(capMs, Math.min(baseMs, capMs) * 2 ** Math.min(Math.max(retry, 1) - 1, 62))
  return Math.max(afterMs, 0) + random() * bound
}

/** The longest delay of a timer of JavaScript, 24 days. A timer with a longer one ends at once. */
export const longestTimerMs = 2 ** 31 - 1

/**
 * Returns the wait in milliseconds that Retry-After asks for, as seconds or as a date beside Date, at most Number.MAX_SAFE_INTEGER; 0 if it
 * is missing or invalid.
 */
export function retryAfterMs(headers: Headers): number {
  const text = headers.get('retry-after') ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, Number.MAX_SAFE_INTEGER)
  const at = Date.parse(text)
  const now = Date.parse(headers.get('date') ?? '')
  return Number.isNaN(at) || Number.isNaN(now) ? 0 : Math.max(at - now, 0)
}

// A retry costs as much as ten calls earn, and ten retries can be saved up. A service in trouble gets a tenth more requests than usual,
// and after a short failure all calls are retried.
const retryCost = 10
const maxBudget = 10 * retryCost

/** Bounds the retries of all calls of a client to a tenth of the calls, plus ten. */
export class RetryBudget {
  #spent = 0

  /** Adds what one call earns. */
  earn(): void {
    this.#spent = Math.max(this.#spent - 1, 0)
  }

  /** Takes a retry; false if the budget is used up. */
  take(): boolean {
    if (this.#spent + retryCost > maxBudget) return false
    this.#spent += retryCost
    return true
  }
}
