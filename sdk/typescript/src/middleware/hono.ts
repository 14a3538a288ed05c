import type { Context, Env, MiddlewareHandler } from 'hono'
import type { Client } from '../client.js'
import { decide, type QuotaOptions } from './core.js'

export type { QuotaOptions } from './core.js'

/** Returns Hono middleware that charges each request to its tenant: `app.use(quota(client, {meter: 'api_calls', tenant: c => ...}))`. */
export function quota<E extends Env = Env>(client: Client, options: QuotaOptions<Context<E>>): MiddlewareHandler<E> {
  return async (c, next) => {
    const decision = await decide(client, options, c, { method: c.req.method, path: c.req.path, ip: undefined })
    if (!decision.passed) {
      const headers = new Headers(decision.headers)
      headers.set('content-type', 'application/problem+json')
      return new Response(decision.body, { status: decision.status, headers })
    }
    await next()
    // Waiting for the refund keeps it alive on runtimes that end with the response.
    await decision.settle(c.res.status)
    for (const [name, value] of decision.headers) c.header(name, value)
    return undefined
  }
}
