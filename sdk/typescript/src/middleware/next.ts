import type { NextApiHandler, NextApiRequest } from 'next'
import type { NextRequest } from 'next/server.js'
import type { Client } from '../client.js'
import { decide, type QuotaOptions } from './core.js'
import { guard, pathOf } from './node.js'

export type { QuotaOptions } from './core.js'

/**
 * Wraps a route handler of the App Router: `export const GET = withQuota(client, {meter: 'api_calls', tenant: ...}, async (req) => ...)`.
 * A handler that throws or answers 500 and above is refunded.
 */
export function withQuota<A extends unknown[]>(
  client: Client,
  options: QuotaOptions<NextRequest>,
  handler: (req: NextRequest, ...rest: A) => Response | Promise<Response>,
): (req: NextRequest, ...rest: A) => Promise<Response> {
  return async (req, ...rest) => {
    const decision = await decide(client, options, req, { method: req.method, path: new URL(req.url).pathname, ip: undefined })
    if (!decision.passed) {
      const headers = new Headers(decision.headers)
      headers.set('content-type', 'application/problem+json')
      return new Response(decision.body, { status: decision.status, headers })
    }
    let response: Response
    try {
      response = await handler(req, ...rest)
    } catch (error) {
      await decision.settle(statusOf(error))
      throw error
    }
    // Waiting for the refund keeps it alive on runtimes that end with the response.
    await decision.settle(response.status)
    return withHeaders(response, decision.headers)
  }
}

/** Wraps an API route of the Pages Router. */
export function withQuotaApi<T = unknown>(client: Client, options: QuotaOptions<NextApiRequest>, handler: NextApiHandler<T>): NextApiHandler<T> {
  return async (req, res) => {
    const seen = { method: req.method ?? 'GET', path: pathOf(req.url), ip: undefined }
    if (await guard(client, options, req, seen, res)) await handler(req, res)
  }
}

/** Returns the status of what a handler threw. redirect() and notFound() throw, and are no failures. */
function statusOf(error: unknown): number {
  const digest = String((error as { digest?: unknown } | null)?.digest ?? '')
  if (digest.startsWith('NEXT_REDIRECT')) return 307
  const [, status] = /^NEXT_HTTP_ERROR_FALLBACK;(\d{3})$/.exec(digest) ?? []
  if (status) return Number(status)
  return digest === 'NEXT_NOT_FOUND' ? 404 : 500
}

function withHeaders(response: Response, headers: [string, string][]): Response {
  try {
    for (const [name, value] of headers) response.headers.set(name, value)
    return response
  } catch {
    // The headers of Response.redirect and of fetch are immutable.
    const copy = new Response(response.body, response)
    for (const [name, value] of headers) copy.headers.set(name, value)
    return copy
  }
}
