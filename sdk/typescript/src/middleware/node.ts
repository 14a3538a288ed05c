import type { Client } from '../client.js'
import { decide, type QuotaOptions, type Seen } from './core.js'

/** The part of Node's response that is used. */
export interface NodeResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body: string): unknown
  once(event: 'finish', listener: () => void): unknown
}

/** Decides about a request, and answers it if it is refused. Returns whether the handler may run. */
export async function guard<R>(client: Client, options: QuotaOptions<R>, req: R, seen: Seen, res: NodeResponse): Promise<boolean> {
  const decision = await decide(client, options, req, seen)
  for (const [name, value] of decision.headers) res.setHeader(name, value)
  if (!decision.passed) {
    res.statusCode = decision.status
    res.setHeader('content-type', 'application/problem+json')
    res.end(decision.body)
    return false
  }
  res.once('finish', () => void decision.settle(res.statusCode))
  return true
}

/** Returns the path of a URL without its query. */
export function pathOf(url: string | undefined): string {
  return (url ?? '').split('?', 1)[0] as string
}
