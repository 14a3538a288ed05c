import type { codes } from './codes.gen.js'
import type { Problem, Schemas } from './types.js'

/** A code of the contract. */
export type Code = (typeof codes)[number]

/** The codes of this library: there was no answer, or none of the service. */
export type LocalCode = 'no_answer' | 'timeout' | 'not_the_service'

/** The fields that a problem of a code has for sure, beyond what the contract's union says. */
interface Details {
  invalid_argument: { errors: Schemas['FieldError'][] }
  quota_exceeded: { reset_at: string }
  credits_exhausted: { reset_at: null }
}

/** The problem of an error with a known code: the members of the union with that code. */
export type ProblemOf<C> = Problem & { code: C } & (C extends keyof Details ? Details[C] : unknown)

/** What an error is made of. */
export interface ErrorInit {
  status: number
  code: string
  detail: string
  problem?: Problem
  headers?: Headers
  retryAfterMs?: number
  attempts?: number
  idempotencyKey?: string
  outcomeUnknown?: boolean
  cause?: unknown
}

const brand = Symbol.for('quotasvc.QuotaError')

/** An error of a call. Branch on `code`, or on the class. */
export class QuotaError<C extends string = string> extends Error {
  /** HTTP status of the service's answer; 0 without one. It is not named status: Express and Fastify would answer with it to their client. */
  readonly httpStatus: number
  readonly code: C
  /** What was wrong, in words, without tenant's data beyond ids. */
  readonly detail: string
  /** The answer's body (RFC 9457). It is absent if the service did not answer. */
  readonly problem: ProblemOf<C> | undefined
  readonly headers: Headers
  /** The Retry-After of the answer; 0 without one. */
  readonly retryAfterMs: number
  /** The service's id of the request, for its log. */
  readonly requestId: string
  readonly attempts: number
  /** Send the call again with this key: it takes effect once. */
  readonly idempotencyKey: string
  /** The operation may have taken effect: an attempt got no answer of the service about it. Always false for a read. */
  readonly outcomeUnknown: boolean

  constructor(init: ErrorInit) {
    super(`${init.code}: ${init.detail}`, init.cause === undefined ? undefined : { cause: init.cause })
    this.name = new.target.name
    this.httpStatus = init.status
    this.code = init.code as C
    this.detail = init.detail
    this.problem = init.problem as ProblemOf<C> | undefined
    this.headers = init.headers ?? new Headers()
    this.retryAfterMs = init.retryAfterMs ?? 0
    this.requestId = init.problem?.request_id ?? this.headers.get('x-request-id') ?? ''
    this.attempts = init.attempts ?? 1
    this.idempotencyKey = init.idempotencyKey ?? ''
    this.outcomeUnknown = init.outcomeUnknown ?? false
    Object.defineProperty(this, brand, { value: true })
  }
}

/** 402, or 429 of a balance or a limit: paying or waiting helps. Nothing was charged. */
export class DeniedError<C extends string = string> extends QuotaError<C> {}
/** 429 quota_exceeded: the next period brings more. */
export class QuotaExceededError extends DeniedError<'quota_exceeded'> {}
/** 402 credits_exhausted: only a grant helps. */
export class CreditsExhaustedError extends DeniedError<'credits_exhausted'> {}
/** 429 rate_limited: too fast. */
export class RateLimitedError extends DeniedError<'rate_limited'> {}
/** 400 and 422: the same request fails again. */
export class InvalidRequestError<C extends string = string> extends QuotaError<C> {}
/** 401: the client's key is missing, unknown, expired or revoked. */
export class UnauthenticatedError extends QuotaError<'unauthenticated'> {}
/** 403: the plan, a block or the client's key forbids it. */
export class ForbiddenError<C extends string = string> extends QuotaError<C> {}
/** 404 and 410. */
export class NotFoundError<C extends string = string> extends QuotaError<C> {}
/** 409: the state does not allow it. */
export class ConflictError<C extends string = string> extends QuotaError<C> {}
/** 5xx: the service did not decide. The call may be sent again with its key. */
export class UnavailableError<C extends string = string> extends QuotaError<C> {}
/** There was no answer in time (timeout), or none at all (no_answer). */
export class ConnectionError extends UnavailableError<'no_answer' | 'timeout'> {}
/** The attempt or the call took longer than timeoutMs or deadlineMs. */
export class TimeoutError extends ConnectionError {}

/**
 * Reports whether an error is one of this library, and has the code if one is named. Unlike instanceof it recognises errors of another
 * copy of the library (ESM beside CommonJS).
 */
export function isQuotaError<C extends Code | LocalCode>(error: unknown, code: C): error is QuotaError<C>
export function isQuotaError(error: unknown): error is QuotaError
export function isQuotaError(error: unknown, code?: string): boolean {
  const ours = typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[brand] === true
  return ours && (code === undefined || (error as QuotaError).code === code)
}

type ErrorClass = new (init: ErrorInit) => QuotaError

const byCode: Partial<Record<string, ErrorClass>> = {
  quota_exceeded: QuotaExceededError,
  credits_exhausted: CreditsExhaustedError,
  rate_limited: RateLimitedError,
}

const byStatus: Record<number, ErrorClass> = {
  400: InvalidRequestError,
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  422: InvalidRequestError,
}

/** Returns the error for a refusal. */
export function newError(init: ErrorInit): QuotaError {
  const kind = byCode[init.code] ?? (init.status >= 500 ? UnavailableError : byStatus[init.status]) ?? QuotaError
  return new kind(init)
}
