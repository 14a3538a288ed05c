import type { Client } from '../client.js'
import { newKey } from '../crypto.js'
import { QuotaError, UnavailableError } from '../errors.js'
import type { ConsumeRequest } from '../types.js'

/** What a request costs, and who pays. R is the request of the framework. */
export interface QuotaOptions<R> {
  meter: string | ((req: R) => string)
  /** The tenant that pays. null lets the request pass uncounted; undefined is an error: the middleware belongs behind authentication. */
  tenant: (req: R) => string | null | undefined | Promise<string | null | undefined>
  /** Units, default 1. 0 lets the request pass uncounted. */
  cost?: number | ((req: R) => number)
  /** A user, key or team of the tenant, for caps and limits per subject. */
  subject?: (req: R) => string | undefined
  /** The route for limits. Default: the path without its query. */
  route?: (req: R) => string | undefined
  /** The client's address for limits per ip and blocks. Default: req.ip in Express and Fastify, which follow their trust proxy setting; none elsewhere. */
  ip?: (req: R) => string | undefined
  /** Kept with the journal's entries. */
  metadata?: (req: R) => Record<string, unknown> | undefined
  /**
   * The key of the operation. By default each request is an operation of its own. Use a client's key only if the handler recognises
   * repeated requests by it: otherwise a client could send one key for all requests and pay once.
   */
  idempotencyKey?: (req: R) => string | undefined
  /** Passes requests, uncharged, while the service does not decide. Default: the client's failOpen for the meter. */
  failOpen?: boolean
  /** Whether to take the units back, by the status of the response. Default: 500 and above. Requests that a client breaks off are paid. */
  refund?: (status: number) => boolean
  /** Bounds one attempt. Default 2,000. */
  timeoutMs?: number
  /** Bounds the decision with its retries. Default 5,000. */
  deadlineMs?: number
}

/** What a framework knows of a request. */
export interface Seen {
  method: string
  path: string
  ip: string | undefined
}

/** The decision about a request. */
export type Decision = Passed | Refused

export interface Passed {
  passed: true
  /** For the client of the framework. */
  headers: [string, string][]
  /** Call it once with the status of the response: it takes the units back if the handler failed. Its errors go to onBackgroundError. */
  settle: (status: number) => Promise<void>
}

export interface Refused {
  passed: false
  status: number
  headers: [string, string][]
  /** application/problem+json */
  body: string
}

const timeoutMs = 2_000
const deadlineMs = 5_000

// When an attempt that nobody waits for any more has ended at the service for sure: it answers within 5 s.
const lateMs = 6_000

const passedOn = /^(x-quota-(limit|remaining|reset)|ratelimit(-.+)?|x-ratelimit-.+|retry-after)$/

// The refusals that are about the framework's client. All others are about this backend (a wrong key, an unknown meter or tenant): errors.
const denials = new Set([
  'quota_exceeded',
  'credits_exhausted',
  'rate_limited',
  'tenant_suspended',
  'meter_not_in_plan',
  'feature_not_in_plan',
  'cost_exceeds_capacity',
])

/** Decides about a request. Throws what the framework should treat as an error of this backend. */
export async function decide<R>(client: Client, options: QuotaOptions<R>, req: R, seen: Seen): Promise<Decision> {
  const body = await newConsume(options, req, seen)
  if (!body) return { passed: true, headers: [], settle: async () => {} }
  const given = options.idempotencyKey?.(req)
  const idempotencyKey = given ?? (await newKey())
  const { failOpen } = options
  try {
    const answer = await client.consume(body, {
      idempotencyKey,
      timeoutMs: options.timeoutMs ?? timeoutMs,
      deadlineMs: options.deadlineMs ?? deadlineMs,
      retryDenied: false,
      ...(failOpen === undefined ? {} : { failOpen }),
    })
    const { headers, failedOpen, replayed, attempts } = answer.meta
    const refund = options.refund ?? ((status: number) => status >= 500)
    // An earlier request with the same key may have been served. It has paid, and keeps what it paid for.
    let settled = failedOpen || (given !== undefined && replayed && attempts === 1)
    const settle = async (status: number): Promise<void> => {
      if (settled || !refund(status)) return
      settled = true
      await client.background(client.undo(body.tenant, answer.operation_id))
    }
    return { passed: true, headers: passOn(headers), settle }
  } catch (error) {
    if (!(error instanceof QuotaError)) throw error
    if (error.outcomeUnknown && given === undefined) takeBackLater(client, body.tenant, idempotencyKey)
    return refuse(error)
  }
}

async function newConsume<R>(options: QuotaOptions<R>, req: R, seen: Seen): Promise<ConsumeRequest | undefined> {
  const tenant = await options.tenant(req)
  if (tenant === null) return undefined
  if (typeof tenant !== 'string' || tenant === '') {
    throw new TypeError('quota: tenant() returned nothing. Put the middleware behind authentication, or return null for requests that are not counted')
  }
  const amount = typeof options.cost === 'function' ? options.cost(req) : (options.cost ?? 1)
  if (amount === 0) return undefined
  if (!Number.isSafeInteger(amount) || amount < 0) throw new RangeError(`quota: cost must be an integer of 0 or more, got ${amount}`)
  const meter = typeof options.meter === 'function' ? options.meter(req) : options.meter
  const route = (options.route ? options.route(req) : seen.path)?.replace(/[^ -~]/g, (c) => encodeURIComponent(c)).slice(0, 256)
  const method = seen.method.toUpperCase()
  const ip = (options.ip ? options.ip(req) : seen.ip)?.replace(/%.*$/, '')
  const subject = options.subject?.(req)
  const metadata = options.metadata?.(req)
  return {
    tenant,
    items: [{ meter, amount }],
    ...(subject ? { subject } : {}),
    ...(route ? { route } : {}),
    ...(/^[A-Z][A-Z-]{0,31}$/.test(method) ? { method } : {}),
    ...(ip ? { ip } : {}),
    ...(metadata ? { metadata } : {}),
  }
}

/** Returns the refusal for the framework's client, or throws an error that is none of the client's business. */
function refuse(error: QuotaError): Refused {
  const { problem, code, httpStatus } = error
  const wrongKey = problem?.code === 'rate_limited' && !problem['violated-policies']
  if (problem && denials.has(code) && !wrongKey) {
    return refused(httpStatus, passOn(error.headers), problem)
  }
  if (problem?.code === 'forbidden' && problem.blocked) {
    // Who is blocked and why stays between the operator and the service.
    return refused(403, [], { code, title: problem.title, type: problem.type, detail: 'blocked', request_id: problem.request_id })
  }
  // The framework must not take the service's status or words for its own, so the error is wrapped.
  if (!(error instanceof UnavailableError) && !wrongKey) throw new Error(`quota: the service refused this backend (${code})`, { cause: error })
  const seconds = Math.max(Math.ceil(error.retryAfterMs / 1000), 1)
  const headers: [string, string][] = [['retry-after', String(seconds)]]
  return refused(503, headers, { code: 'unavailable', title: 'Unavailable', detail: `the quota could not be decided now; retry after ${seconds} s`, request_id: error.requestId })
}

function refused(status: number, headers: [string, string][], problem: object): Refused {
  return { passed: false, status, headers, body: JSON.stringify({ ...problem, status }) }
}

function passOn(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => passedOn.test(name))
}

/** Takes back a charge whose answer was lost: the request was refused, so it must not be paid. */
function takeBackLater(client: Client, tenant: string, key: string): void {
  const late = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, lateMs)
    ;(timer as { unref?: () => void }).unref?.()
  })
  void client.background(late.then(() => client.undo(tenant, key)))
}
