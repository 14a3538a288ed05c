// The same promises for each framework, with the real framework and the real service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import * as http from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import express, { type Request, type Response as ExpressResponse } from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import type { Client, QuotaOptions } from 'quotasvc'
import { quota as expressQuota } from 'quotasvc/express'
import { quota as fastifyQuota } from 'quotasvc/fastify'
import { quota as honoQuota } from 'quotasvc/hono'
import { id, key, newClient, newTenant, Proxy, unavailable, until, used } from './service.js'

/** An application with GET /work?status=, which answers with that status and throws for 599. It is charged one unit of `calls`. It
 * stops at the end of the test that starts it. */
interface App {
  url: string
}

type Options = Partial<Omit<QuotaOptions<unknown>, 'tenant'>>

const frameworks: Record<string, (client: Client, options?: Options) => Promise<App>> = {
  'Express 5': (client, options) => expressApp(express as never, client, options),
  'Express 4': (client, options) => expressApp(express4 as never, client, options),
  Fastify: fastifyApp,
  Hono: honoApp,
}

async function expressApp(make: typeof express, client: Client, options: Options = {}): Promise<App> {
  const app = make()
  app.set('trust proxy', 'loopback')
  app.set('env', 'test') // errors of handlers are not printed
  app.use(expressQuota(client, { meter: 'calls', tenant: (req) => req.header('x-tenant'), ...options } as QuotaOptions<Request>))
  app.get('/work', (req: Request, res: ExpressResponse) => {
    const status = Number(req.query.status ?? 200)
    if (status === 599) throw new Error('the handler failed')
    res.status(status).json({ ok: true })
  })
  const server = http.createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  after(() => close(server))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/work` }
}

async function fastifyApp(client: Client, options: Options = {}): Promise<App> {
  const app = fastify({ trustProxy: 'loopback' })
  await app.register(fastifyQuota(client, { meter: 'calls', tenant: (req) => req.headers['x-tenant'] as string, ...options }))
  app.get('/work', async (req, reply) => {
    const status = Number((req.query as { status?: string }).status ?? 200)
    if (status === 599) throw new Error('the handler failed')
    return reply.code(status).send({ ok: true })
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  app.server.unref()
  after(() => app.close())
  return { url: `${url}/work` }
}

async function honoApp(client: Client, options: Options = {}): Promise<App> {
  const app = new Hono()
  const ip = (c: { req: { header: (name: string) => string | undefined } }) => c.req.header('x-forwarded-for')
  app.use(honoQuota(client, { meter: 'calls', tenant: (c) => c.req.header('x-tenant'), ip, ...options }))
  app.get('/work', (c) => {
    const status = Number(c.req.query('status') ?? 200)
    if (status === 599) throw new Error('the handler failed')
    return c.json({ ok: true }, status as 200)
  })
  app.onError((error, c) => c.json({ error: error.message }, 500))
  const server = await new Promise<http.Server>((resolve) => {
    const s = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, () => resolve(s as http.Server))
  })
  server.unref()
  after(() => close(server))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/work` }
}

async function close(server: http.Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

const get = (url: string, tenant: string, headers: Record<string, string> = {}) => fetch(url, { headers: { 'x-tenant': tenant, ...headers }, redirect: 'manual' })

for (const [name, start] of Object.entries(frameworks)) {
  describe(name, () => {
    test(`middleware: ${name}: a request is charged, and its client gets the balance and the limits in headers`, async () => {
      const rule = id('r')
      const tenant = await newTenant(10, [{ rule, per: ['tenant'], kind: 'token_bucket', rate: '100/s', burst: 100 }])
      const app = await start(newClient())
      const response = await get(app.url, tenant)
      assert.equal(response.status, 200)
      assert.equal(response.headers.get('x-quota-limit'), '10')
      assert.equal(response.headers.get('x-quota-remaining'), '9')
      assert.match(response.headers.get('x-quota-reset') ?? '', /^\d+$/)
      assert.match(response.headers.get('ratelimit') ?? '', new RegExp(`"${rule}";r=99`))
      assert.match(response.headers.get('ratelimit-policy') ?? '', new RegExp(`"${rule}";q=100`))
      assert.equal(response.headers.get('retry-after'), null)
      assert.equal((await used(tenant)).used, 1)
    })

    test(`middleware: ${name}: a denial is the service's answer, and the handler does not run`, async () => {
      const tenant = await newTenant(1)
      const app = await start(newClient())
      await get(app.url, tenant)
      const denied = await get(app.url, tenant)
      assert.equal(denied.status, 429)
      assert.match(denied.headers.get('content-type') ?? '', /^application\/problem\+json/)
      assert.equal(denied.headers.get('x-quota-remaining'), '0')
      assert.ok(Number(denied.headers.get('retry-after')) >= 1)
      const problem = (await denied.json()) as { code: string; status: number; limiting: { meter: string } }
      assert.deepEqual([problem.code, problem.status, problem.limiting.meter], ['quota_exceeded', 429, 'calls'])
    })

    test(`middleware: ${name}: a rate limit by route and address denies at once with Retry-After`, async () => {
      const rule = id('r')
      const tenant = await newTenant(10, [{ rule, per: ['tenant', 'ip', 'route'], match: { route: '/work' }, kind: 'token_bucket', rate: '1/h', burst: 1 }])
      const app = await start(newClient())
      const from = (ip: string) => get(app.url, tenant, { 'x-forwarded-for': ip })
      assert.equal((await from('192.0.2.1')).status, 200)
      const denied = await from('192.0.2.1')
      assert.equal(denied.status, 429)
      assert.ok(Number(denied.headers.get('retry-after')) > 60)
      assert.equal(((await denied.json()) as { code: string }).code, 'rate_limited')
      assert.equal((await from('192.0.2.2')).status, 200)
    })

    test(`refund: ${name}: a handler that throws or answers 5xx is refunded; 4xx are paid`, async () => {
      const tenant = await newTenant(10)
      const client = newClient()
      const app = await start(client)
      for (const [status, want] of [[599, 500], [503, 503], [404, 404], [200, 200]]) {
        assert.equal((await get(`${app.url}?status=${status}`, tenant)).status, want)
      }
      await until('the refunds are made', async () => (await used(tenant)).remaining === 8)
      await client.flush()
      assert.equal((await used(tenant)).remaining, 8)
    })

    test(`fail-open: ${name}: a service that does not decide is 503 with Retry-After, or passes where it may`, async () => {
      const proxy = await Proxy.start()
      proxy.always = unavailable('31')
      const events: string[] = []
      const client = newClient({ url: proxy.url, failOpen: { soft: true }, onFailOpen: (e) => events.push(`${e.operation} ${e.tenant}`) })
      const closed = await start(client)
      const refused = await get(closed.url, 'acme')
      assert.equal(refused.status, 503)
      assert.equal(refused.headers.get('retry-after'), '31')
      const open = await start(client, { meter: 'soft' })
      assert.equal((await get(open.url, 'acme')).status, 200)
      assert.deepEqual(events, ['consume acme'])
    })

    test(`middleware: ${name}: a lost answer is charged once, and the handler runs once`, async () => {
      const tenant = await newTenant(10)
      const proxy = await Proxy.start('drop-answer')
      const app = await start(newClient({ url: proxy.url }))
      assert.equal((await get(app.url, tenant)).status, 200)
      assert.equal((await used(tenant)).used, 1)
    })

    test(`middleware: ${name}: faults of this backend are its errors, and no answers of the service`, async () => {
      const tenant = await newTenant(10)
      const wrongKey = await start(newClient({ key: 'wrong' }))
      assert.equal((await get(wrongKey.url, tenant)).status, 500)
      const app = await start(newClient())
      assert.equal((await get(app.url, 'nobody')).status, 500)
      const untold = await start(newClient(), { tenant: () => undefined } as Options)
      assert.equal((await get(untold.url, tenant)).status, 500)
    })

    test(`middleware: ${name}: null for the tenant and 0 for the cost are not counted; a cost and a subject are`, async () => {
      const tenant = await newTenant(10)
      const nobody = await start(newClient(), { tenant: () => null } as Options)
      const response = await get(nobody.url, tenant)
      assert.deepEqual([response.status, response.headers.get('x-quota-limit')], [200, null])
      const free = await start(newClient(), { cost: () => 0 })
      assert.equal((await get(free.url, tenant)).status, 200)
      assert.equal((await used(tenant)).used, 0)
      const dear = await start(newClient(), { cost: () => 4, subject: () => 'user-1' })
      assert.equal((await get(dear.url, tenant)).headers.get('x-quota-remaining'), '6')
    })
  })
}

test('refund: a request that was refused because its answer was lost is not paid', async () => {
  const tenant = await newTenant(10)
  const proxy = await Proxy.start('drop-answer', unavailable('31'))
  const client = newClient({ url: proxy.url })
  const app = await fastifyApp(client)
  assert.equal((await get(app.url, tenant)).status, 503)
  assert.equal((await used(tenant)).used, 1)
  const keepAlive = setInterval(() => {}, 1_000) // the wait before the refund does not keep a process alive
  await client.flush()
  clearInterval(keepAlive)
  assert.equal((await used(tenant)).remaining, 10)
})

test('refund: a replay by a key of the client is served and paid once, also if its handler fails', async () => {
  const tenant = await newTenant(10)
  const client = newClient()
  const app = await honoApp(client, { idempotencyKey: () => `${tenant}-1` })
  assert.equal((await get(app.url, tenant)).status, 200)
  assert.equal((await get(`${app.url}?status=500`, tenant)).status, 500)
  await client.flush()
  assert.equal((await used(tenant)).remaining, 9)
})

test('middleware: a block is 403 without who is blocked and why', async () => {
  const tenant = await newTenant(10)
  const client = newClient()
  await client.api.putBlock({ kind: 'tenant', value: tenant, body: { reason: 'did not pay' } })
  await until('the block applies', async () => !(await client.check({ tenant, items: [{ meter: 'calls', amount: 1 }], max_stale_ms: 0 })).allowed)
  const app = await fastifyApp(newClient())
  const response = await get(app.url, tenant)
  const text = await response.text()
  assert.equal(response.status, 403)
  assert.equal(text.includes('did not pay') || text.includes(tenant), false, text)
})

test('middleware: Fastify: a route that does not exist is not charged, and a scope charges its own routes only', async () => {
  const tenant = await newTenant(10)
  const app = fastify()
  app.get('/free', async () => 'free')
  await app.register(async (scope) => {
    await scope.register(fastifyQuota(newClient(), { meter: 'calls', tenant: (req) => req.headers['x-tenant'] as string }))
    scope.get('/paid', async () => 'paid')
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  assert.deepEqual([(await get(`${url}/free`, tenant)).status, (await get(`${url}/none`, tenant)).status], [200, 404])
  assert.equal((await used(tenant)).used, 0)
  assert.equal((await get(`${url}/paid`, tenant)).status, 200)
  assert.equal((await used(tenant)).used, 1)
  await app.close()
})

describe('Next', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  let proxy: Proxy
  let url = ''
  let stop = async () => {}

  before(async () => {
    proxy = new Proxy() // start would stop it at the end of this hook
    await proxy.listen(0)
    const next = createRequire(import.meta.url).resolve('next/dist/bin/next')
    const child = spawn(process.execPath, [next, 'dev', '-H', '127.0.0.1', '-p', '0', `${root}test/next-app`], {
      env: { ...process.env, NODE_ENV: 'development', QUOTASVC_URL: proxy.url, QUOTASVC_KEY: key, NEXT_TELEMETRY_DISABLED: '1', NODE_TEST_CONTEXT: '' } as NodeJS.ProcessEnv,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let log = ''
    child.stdout.on('data', (d) => (log += d))
    child.stderr.on('data', (d) => (log += d))
    const ended = new Promise((resolve) => child.once('exit', resolve))
    stop = async () => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL')
      } catch {
        // it has ended
      }
      await ended
      await proxy.stop()
    }
    await until(`Next serves`, () => {
      url = /http:\/\/127\.0\.0\.1:\d+/.exec(log)?.[0] ?? ''
      if (child.exitCode !== null) throw new Error(log)
      return url !== '' && log.includes('Ready')
    }, 120_000)
    await until('Next has compiled', async () => (await get(`${url}/api/work`, await newTenant(5))).status === 200, 120_000).catch((e: unknown) => assert.fail(`${String(e)}\n${log}`))
  })
  after(() => stop())

  test('middleware: Next: a route handler is charged, its client gets headers, and a denial is the service\'s answer', async () => {
    const tenant = await newTenant(1)
    const response = await get(`${url}/api/work`, tenant)
    assert.equal(response.status, 200)
    assert.deepEqual([response.headers.get('x-quota-limit'), response.headers.get('x-quota-remaining')], ['1', '0'])
    const denied = await get(`${url}/api/work`, tenant)
    assert.equal(denied.status, 429)
    assert.ok(Number(denied.headers.get('retry-after')) >= 1)
    assert.match(denied.headers.get('content-type') ?? '', /^application\/problem\+json/)
    assert.equal(((await denied.json()) as { code: string }).code, 'quota_exceeded')
  })

  test('refund: Next: a handler that throws or answers 5xx is refunded; redirects and 4xx are paid', async () => {
    const tenant = await newTenant(10)
    for (const [path, want] of [['work?status=599', 500], ['work?status=503', 503], ['work?status=404', 404], ['redirects', 307]] as const) {
      assert.equal((await get(`${url}/api/${path}`, tenant)).status, want, path)
    }
    assert.equal((await used(tenant)).remaining, 8)
  })

  test('middleware: Next: an API route of the Pages Router is charged and refunded', async () => {
    const tenant = await newTenant(3)
    assert.equal((await get(`${url}/api/old`, tenant)).headers.get('x-quota-remaining'), '1')
    assert.equal((await get(`${url}/api/old`, tenant)).status, 429)
    const other = await newTenant(3)
    assert.equal((await get(`${url}/api/old?status=500`, other)).status, 500)
    await until('the refund is made', async () => (await used(other)).remaining === 3)
  })

  test('fail-open: Next: a service that does not decide is 503 with Retry-After', async () => {
    proxy.faults = [unavailable('31')]
    const response = await get(`${url}/api/work`, 'acme')
    assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '31'])
  })
})
