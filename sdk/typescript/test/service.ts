// The real service that scripts/test.mjs has started, and a proxy before it that can fail in every way a network does.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { Client, type ClientOptions, type Schemas } from 'quotasvc'

export function env(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set: run the tests with npm test`)
  return value
}

export const url = env('QUOTASVC_TEST_URL')
export const key = env('QUOTASVC_TEST_KEY')

/** Returns a client of the service. Waits between retries are short. */
export function newClient(options: ClientOptions = {}): Client {
  return new Client({ url, key, ...options, retry: { baseMs: 20, capMs: 100, ...options.retry } })
}

export const id = (prefix: string): string => `${prefix}-${randomBytes(6).toString('hex')}`

export const admin = newClient({ retry: { baseMs: 100 }, timeoutMs: 20_000, deadlineMs: 60_000 })

/** Makes a tenant on a plan of its own, with so many units of the meter `calls` a year, and the meter `credits` without any. */
export async function newTenant(calls = 100, limits: NonNullable<Schemas['PlanRequest']['limits']> = []): Promise<string> {
  const name = id('t')
  await admin.api.putMeter({ meter: 'calls', body: { unit: 'call' } })
  await admin.api.putMeter({ meter: 'credits', body: { unit: 'credit' } })
  await admin.api.putPlan({
    plan: name,
    body: {
      allowances: [
        { meter: 'calls', amount: calls, every: 'year', anchor: 'calendar' },
        { meter: 'credits', amount: 0, every: 'once', anchor: 'calendar' },
      ],
      ...(limits.length > 0 ? { limits } : {}),
    },
  })
  await admin.api.putTenant({ tenant: name, body: { plan: name } })
  const body = { tenant: name, items: [{ meter: 'calls', amount: 1 }], route: '/work', ip: '192.0.2.9', max_stale_ms: 0 }
  // A change of limits takes effect a moment later.
  await until('the limits apply', async () => (await admin.check(body)).limits.length === limits.length)
  return name
}

/** Returns what a tenant has used and holds of the meter `calls`. */
export async function used(tenant: string, meter = 'calls'): Promise<{ used: number; held: number; remaining: number }> {
  const { used, held, remaining } = await admin.api.getBalance({ tenant, meter })
  return { used, held, remaining }
}

/** Waits until a condition holds. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
  for (const end = Date.now() + withinMs; !(await condition()); ) {
    if (Date.now() > end) throw new Error(`${what}: not within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** A request that the proxy has seen. */
export interface Seen {
  method: string
  path: string
  key: string | undefined
  body: string
  at: number
  /** Whether it went to the service. */
  forwarded: boolean
}

/** What the proxy does with a request. drop-answer: the service does it, and the connection breaks before its answer. */
export type Fault = 'pass' | 'drop-answer' | 'drop-request' | 'hang' | { status: number; headers?: Record<string, string>; body?: string }

/** A proxy before the service. Each request takes the next of `faults`; without one it is treated by `always`. */
export class Proxy {
  readonly seen: Seen[] = []
  faults: Fault[] = []
  always: Fault = 'pass'
  url = ''
  readonly #agent = new http.Agent({ keepAlive: true })
  readonly #server = http.createServer((req, res) => void this.#handle(req, res))

  /** Starts a proxy, which stops at the end of the test that calls this. */
  static async start(...faults: Fault[]): Promise<Proxy> {
    const proxy = new Proxy()
    after(() => proxy.stop())
    proxy.faults = faults
    await proxy.listen(0)
    return proxy
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    this.#server.unref() // it does not keep a process alive
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends the proxy: connections are refused from now on. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    this.#agent.destroy()
  }

  async #handle(req: http.IncomingMessage, res: http.ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of req) body += String(chunk)
    const fault = this.faults.shift() ?? this.always
    const forwarded = fault === 'pass' || fault === 'drop-answer'
    const header = req.headers['idempotency-key']
    this.seen.push({ method: req.method ?? '', path: req.url ?? '', key: header as string | undefined, body, at: Date.now(), forwarded })
    if (fault === 'hang') return
    if (fault === 'drop-request') {
      req.socket.destroy()
      return
    }
    if (!forwarded) {
      const answer = fault as Exclude<Fault, string>
      res.writeHead(answer.status, answer.headers).end(answer.body ?? '')
      return
    }
    const upstream = http.request(url + req.url, { method: req.method ?? 'GET', headers: req.headers, agent: this.#agent }, (answer) => {
      if (fault === 'drop-answer') {
        answer.resume().on('end', () => req.socket.destroy())
        return
      }
      res.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(res)
    })
    upstream.on('error', () => req.socket.destroy())
    upstream.end(body)
  }
}

/** The problem that the service answers with while it cannot decide. */
export const unavailable = (retryAfter = '1'): Fault => ({
  status: 503,
  headers: { 'content-type': 'application/problem+json', 'retry-after': retryAfter },
  body: JSON.stringify({ type: 'about:blank', title: 'Unavailable', status: 503, code: 'unavailable', detail: 'test', request_id: 'r' }),
})

/** Starts a further instance of the service on the same servers. kill ends it as kill -9 does. */
export async function startInstance(): Promise<{ url: string; kill: () => Promise<void> }> {
  const child = spawn(env('QUOTASVC_TEST_PROGRAM'), ['serve'], {
    env: {
      PATH: process.env.PATH,
      QUOTASVC_DATABASE_URL: env('QUOTASVC_TEST_DATABASE_URL'),
      QUOTASVC_REDIS_URL: env('QUOTASVC_TEST_REDIS_URL'),
      QUOTASVC_ADMIN_KEY: key,
      QUOTASVC_LISTEN: '127.0.0.1:0',
      QUOTASVC_OPS_LISTEN: '127.0.0.1:0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stdout.on('data', (d) => (log += d))
  child.stderr.on('data', (d) => (log += d))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  try {
    await until('the instance serves', () => log.includes('"msg":"serving"') || child.exitCode !== null, 60_000)
    const line = log.split('\n').find((l) => l.includes('"msg":"serving"'))
    if (!line) throw new Error(`the instance ended:\n${log}`)
    return { url: (JSON.parse(line) as { api: string }).api, kill }
  } catch (error) {
    await kill()
    throw error
  }
}
