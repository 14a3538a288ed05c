export { Client } from './client.js'
export type { Api, ClientOptions, FailOpenEvent, FailOpenOption } from './client.js'
export {
  ConflictError,
  ConnectionError,
  CreditsExhaustedError,
  DeniedError,
  ForbiddenError,
  InvalidRequestError,
  isQuotaError,
  NotFoundError,
  QuotaError,
  QuotaExceededError,
  RateLimitedError,
  TimeoutError,
  UnauthenticatedError,
  UnavailableError,
} from './errors.js'
export type { Code, LocalCode, ProblemOf } from './errors.js'
export { codes } from './codes.gen.js'
export { backoff } from './backoff.js'
export type { RetryOptions } from './backoff.js'
export { newKey } from './crypto.js'
export type { Fetch, RetryEvent, TransportOptions } from './transport.js'
export type { Hold, HoldInit, HoldResult } from './hold.js'
export { LocalDenial } from './local-units.js'
export type { LocalReason, LocalStats, LocalUnits, LocalUnitsOptions } from './local-units.js'
export { Webhook, WebhookError } from './webhook.js'
export type { WebhookEvent, WebhookOptions } from './webhook.js'
export type { QuotaOptions } from './middleware/core.js'
export type * from './types.js'
