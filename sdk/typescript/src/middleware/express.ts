import type { Request, RequestHandler } from 'express'
import type { Client } from '../client.js'
import type { QuotaOptions } from './core.js'
import { guard } from './node.js'

export type { QuotaOptions } from './core.js'

/**
 * Returns Express middleware that charges each request to its tenant: `app.use(quota(client, {meter: 'api_calls', tenant: req => ...}))`.
 * A denied request is answered with 402, 403 or 429 and a problem; one whose handler fails (500 and above) is refunded.
 */
export function quota(client: Client, options: QuotaOptions<Request>): RequestHandler {
  return (req, res, next) => {
    const seen = { method: req.method, path: req.baseUrl + req.path, ip: req.ip }
    guard(client, options, req, seen, res).then((passed) => {
      if (passed) next()
    }, next)
  }
}
