import { backoff, longestTimerMs, retryAfterMs, retryDefaults, RetryBudget, type RetryOptions } from './backoff.js'
import { ConnectionError, newError, TimeoutError, type QuotaError } from './errors.js'
import type { CallOptions, Problem } from './types.js'

/** The part of fetch that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** What happens before a retry. */
export interface RetryEvent {
  operation: string
  /** The attempt that failed, from 1. */
  attempt: number
  waitMs: number
  error: QuotaError
}

/** Options of the connection to the service. */
export interface TransportOptions {
  /** Address of the service, for example https://quotasvc.internal:8080. Default: the environment's QUOTASVC_URL. */
  url?: string
  /** A key with the scope that the calls need. Default: the environment's QUOTASVC_KEY. */
  key?: string
  /** Bounds one attempt. Default 5 s: what the service takes at most to refuse. */
  timeoutMs?: number
  /** Bounds all attempts and waits of a call. Default 30 s. */
  deadlineMs?: number
  retry?: RetryOptions
  /** Default: the global fetch. */
  fetch?: Fetch
  /** Called before each retry, for metrics. */
  onRetry?: (event: RetryEvent) => void
}

/** A request of one operation. Its key and its body stay the same over all attempts. */
export interface Request {
  operation: string
  method: string
  path: string
  /** JSON; undefined without one. */
  body: string | undefined
  /** Empty without one. */
  key: string
  /** It can be sent twice and takes effect once. */
  repeatable: boolean
}

/** An answer with a status below 300. */
export interface Reply {
  status: number
  headers: Headers
  text: string
  attempts: number
}

// fetch refuses these before it sends anything, so the outcome is known.
const notSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

const retryable = new Set([429, 502, 503, 504])

// After these the service has not said whether an earlier attempt, whose answer was lost, took effect.
const undecided = new Set(['rate_limited', 'queue_full', 'unavailable', 'outcome_unknown'])

/** Sends requests with a key, deadlines and retries. */
export class Transport {
  readonly url: string
  readonly timeoutMs: number
  readonly deadlineMs: number
  readonly retry: Required<RetryOptions>
  readonly #key: string
  readonly #fetch: Fetch
  readonly #budget = new RetryBudget()
  readonly #onRetry: (event: RetryEvent) => void

  constructor(options: TransportOptions) {
    const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
    this.url = (options.url ?? env.QUOTASVC_URL ?? '').replace(/\/+$/, '')
    this.#key = options.key ?? env.QUOTASVC_KEY ?? ''
    this.timeoutMs = options.timeoutMs ?? 5_000
    this.deadlineMs = options.deadlineMs ?? 30_000
    this.retry = { ...retryDefaults, ...withoutUndefined(options.retry ?? {}) }
    this.#fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
    this.#onRetry = options.onRetry ?? (() => {})
    if (!/^https?:\/\/[^/]/.test(this.url)) {
      throw new TypeError('url must begin with http:// or https:// (option url, or environment variable QUOTASVC_URL)')
    }
    if (!/^[!-~]+$/.test(this.#key)) throw new TypeError('key must be set, in visible ASCII (option key, or environment variable QUOTASVC_KEY)')
    for (const [name, value, least] of [
      ['timeoutMs', this.timeoutMs, 1],
      ['deadlineMs', this.deadlineMs, 1],
      ['retry.attempts', this.retry.attempts, 1],
      ['retry.baseMs', this.retry.baseMs, 0],
      ['retry.capMs', this.retry.capMs, 0],
      ['retry.maxWaitMs', this.retry.maxWaitMs, 0],
    ] as const) {
      if (!(value >= least && value <= longestTimerMs)) throw new RangeError(`${name} must be from ${least} to ${longestTimerMs}, got ${value}`)
    }
  }

  /** Sends a request until it is answered, refused for good, or out of time, attempts or budget. Throws a QuotaError, or the signal's reason. */
  async do(request: Request, options: CallOptions = {}): Promise<Reply> {
    const ends = Date.now() + (options.deadlineMs ?? this.deadlineMs)
    let unknown = false
    this.#budget.earn()
    for (let attempt = 1; ; attempt++) {
      let error: QuotaError
      try {
        const timeoutMs = Math.min(options.timeoutMs ?? this.timeoutMs, Math.max(ends - Date.now(), 1))
        return { ...(await this.send(request, { ...options, timeoutMs })), attempts: attempt }
      } catch (e) {
        if (!(e instanceof Refusal)) throw e
        error = e.error(attempt, unknown, request.method !== 'GET')
        unknown = error.outcomeUnknown
      }
      const waitMs = this.#wait(request, error, attempt, options)
      if (waitMs < 0 || Date.now() + waitMs >= ends || !this.#budget.take()) throw error
      quietly(() => this.#onRetry({ operation: request.operation, attempt, waitMs, error }))
      await sleep(waitMs, options.signal)
    }
  }

  /** Returns the wait before a retry; below 0: there is none. */
  #wait(request: Request, error: QuotaError, attempt: number, options: CallOptions): number {
    const { attempts, baseMs, capMs, maxWaitMs, denied } = this.retry
    const { httpStatus } = error
    const passes = httpStatus === 0 || (retryable.has(httpStatus) && (httpStatus !== 429 || (options.retryDenied ?? denied)))
    if (!passes || attempt >= attempts || !request.repeatable || error.retryAfterMs > maxWaitMs) return -1
    return Math.max(error.retryAfterMs, Math.min(backoff(attempt, error.retryAfterMs, baseMs, capMs), maxWaitMs))
  }

  /** Makes one attempt. Throws a Refusal, or the signal's reason. */
  async send(request: Request, options: CallOptions = {}): Promise<Omit<Reply, 'attempts'>> {
    options.signal?.throwIfAborted()
    const controller = new AbortController()
    const timeoutMs = options.timeoutMs ?? this.timeoutMs
    const timer = setTimeout(() => controller.abort(timedOut), timeoutMs)
    const abort = () => controller.abort(options.signal?.reason)
    options.signal?.addEventListener('abort', abort, { once: true })
    let status = 0
    let headers: Headers
    let text: string
    try {
      const response = await this.#fetch(this.url + request.path, {
        method: request.method,
        headers: this.#headers(request, options),
        ...(request.body === undefined ? {} : { body: request.body }),
        redirect: 'manual', // fetch would turn a redirected POST into a GET
        signal: controller.signal,
      })
      ;({ status, headers } = response)
      text = await response.text()
    } catch (cause) {
      options.signal?.throwIfAborted()
      const late = controller.signal.aborted
      throw new Refusal(request.key, {
        status: 0,
        code: late ? 'timeout' : 'no_answer',
        detail: late ? `no answer within ${timeoutMs} ms` : `no answer of ${this.url}: ${reason(cause)}`,
        outcomeUnknown: !neverSent(cause),
        cause,
      })
    } finally {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', abort)
    }
    if (status < 200 || status >= 300) throw refusal(request.key, status, headers, text)
    return { status, headers, text }
  }

  #headers(request: Request, options: CallOptions): Record<string, string> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#key}`, Accept: 'application/json' }
    if (request.body !== undefined) headers['Content-Type'] = 'application/json'
    if (request.key !== '') headers['Idempotency-Key'] = request.key
    if (options.ifMatch !== undefined) headers['If-Match'] = options.ifMatch
    return headers
  }
}

const timedOut = new Error('timed out')

interface Failure {
  status: number
  code: string
  detail: string
  problem?: Problem
  headers?: Headers
  outcomeUnknown: boolean
  cause?: unknown
}

/** A failed attempt. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Headers
  readonly #key: string
  readonly #init: Failure

  constructor(key: string, init: Failure) {
    super(`${init.code}: ${init.detail}`)
    this.status = init.status
    this.code = init.code
    this.headers = init.headers ?? new Headers()
    this.#key = key
    this.#init = init
  }

  get problem(): Problem | undefined {
    return this.#init.problem
  }

  /** Returns the error for callers. unknown: an earlier attempt may have taken effect. changes: the operation is no read. */
  error(attempts = 1, unknown = false, changes = true): QuotaError {
    const init = {
      ...this.#init,
      attempts,
      idempotencyKey: this.#key,
      retryAfterMs: retryAfterMs(this.headers),
      outcomeUnknown: changes && (this.#init.outcomeUnknown || (unknown && (this.status === 0 || undecided.has(this.code)))),
    }
    if (this.status > 0) return newError(init)
    return this.code === 'timeout' ? new TimeoutError(init) : new ConnectionError(init)
  }
}

/** Returns the failed attempt for an answer of 300 or more. An answer without a code is from a proxy, not from the service. */
function refusal(key: string, status: number, headers: Headers, text: string): Refusal {
  let problem: Problem | undefined
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof (parsed as Problem | null)?.code === 'string') problem = parsed as Problem
  } catch {
    // not JSON: a proxy's page
  }
  if (problem) {
    const outcomeUnknown = problem.code === 'outcome_unknown' || status === 500
    return new Refusal(key, { status, code: problem.code, detail: problem.detail ?? '', problem, headers, outcomeUnknown })
  }
  const to = headers.get('location')
  const detail =
    status < 400
      ? `status ${status}${to ? `: redirected to ${to}` : ''}; set url to the address of the service itself`
      : `status ${status} without a code: not the service's answer`
  return new Refusal(key, { status, code: 'not_the_service', detail, headers, outcomeUnknown: status >= 500 })
}

function reason(cause: unknown): string {
  const inner = (cause as { cause?: { code?: unknown; message?: unknown } })?.cause
  return String(inner?.code ?? inner?.message ?? (cause as Error)?.message ?? cause)
}

function neverSent(cause: unknown): boolean {
  for (let at = cause as { code?: string; cause?: unknown; errors?: unknown[] } | undefined, depth = 0; at && depth < 4; depth++) {
    if (at.code !== undefined && notSent.has(at.code)) return true
    if (Array.isArray(at.errors) && at.errors.length > 0) return at.errors.every(neverSent)
    at = at.cause as typeof at
  }
  return false
}

/** Waits; throws the signal's reason if it ends first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}

/** Calls a hook. Its errors are its own. */
export function quietly(hook: () => unknown): void {
  try {
    const result = hook() as { catch?: (f: () => void) => void } | undefined
    result?.catch?.(() => {})
  } catch {
    // a hook for metrics does not fail a call
  }
}

function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined)) as T
}
