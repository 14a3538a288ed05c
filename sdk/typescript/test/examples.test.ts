// Runs every example as its reader does. The application of docs/integrate/node.md is run by `make test-sdk-scenes`.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'quotasvc'
import { admin, id, key, until, url } from './service.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const run = new Set<string>()

async function demoTenant(amount = 5): Promise<string> {
  const tenant = id('demo')
  await admin.api.putPlan({ plan: tenant, body: { allowances: [{ meter: 'api_calls', amount, every: 'year', anchor: 'calendar' }] } })
  await admin.api.putTenant({ tenant, body: { plan: tenant } })
  return tenant
}

interface Program {
  output: () => string
  url: string
  exit: Promise<number | null>
}

/** Starts a program. A server is waited for until it prints its address. */
async function start(t: TestContext, file: string, args: string[] = [], env: Record<string, string> = {}, server = false): Promise<Program> {
  const child = spawn(process.execPath, [file, ...args], {
    env: { PATH: process.env.PATH, QUOTASVC_URL: url, QUOTASVC_KEY: key, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (d) => (output += d))
  child.stderr.on('data', (d) => (output += d))
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  t.after(async () => {
    child.kill('SIGKILL')
    await exit
  })
  let port = ''
  if (server) {
    await until(`${file} listens`, () => {
      if (child.exitCode !== null) throw new Error(output)
      port = /listening.*"port":(\d+)/.exec(output)?.[1] ?? ''
      return port !== ''
    })
  }
  return { output: () => output, url: `http://127.0.0.1:${port}`, exit }
}

function example(t: TestContext, name: string, args: string[] = [], env: Record<string, string> = {}, server = false): Promise<Program> {
  run.add(name)
  return start(t, `${root}test/build/examples/${name}.js`, args, env, server)
}

const get = (to: string, org: string, method = 'GET') => fetch(to, { method, headers: { 'x-org': org } })
const remaining = async (tenant: string) => (await admin.api.getBalance({ tenant, meter: 'api_calls' })).remaining

test('examples: express', async (t) => {
  const tenant = await demoTenant(2)
  const app = await example(t, 'express', [], {}, true)
  assert.equal((await get(`${app.url}/broken`, tenant)).status, 500)
  await until('the refund is made', async () => (await remaining(tenant)) === 2)
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await get(`${app.url}/search`, tenant)).status)
  assert.deepEqual(statuses, [200, 200, 429])
})

test('examples: fastify', async (t) => {
  const tenant = await demoTenant(6)
  const app = await example(t, 'fastify', [], {}, true)
  assert.equal((await get(`${app.url}/health`, tenant)).status, 200)
  assert.equal((await get(`${app.url}/exports`, tenant, 'POST')).status, 200)
  assert.equal((await get(`${app.url}/search`, tenant)).headers.get('x-quota-remaining'), '0')
  assert.equal((await get(`${app.url}/search`, tenant)).status, 429)
})

test('examples: hono', async (t) => {
  const tenant = await demoTenant(1)
  const app = await example(t, 'hono', [], {}, true)
  assert.deepEqual([(await get(`${app.url}/v1/search`, tenant)).status, (await get(`${app.url}/v1/search`, tenant)).status], [200, 429])
})

test('examples: stream', async (t) => {
  const tenant = await demoTenant(6)
  const first = await example(t, 'stream', [tenant])
  assert.equal(await first.exit, 0, first.output())
  assert.match(first.output(), /Quotas are kept\.\{"used":3,"charged":3,"shortfall":0\}/)
  const second = await example(t, 'stream', [tenant])
  assert.equal(await second.exit, 0)
  assert.match(second.output(), /denied quota_exceeded/)
})

test('examples: errors', async (t) => {
  const tenant = await demoTenant(10)
  const program = await example(t, 'errors', [tenant])
  assert.equal(await program.exit, 0, program.output())
  assert.match(program.output(), /work that is paid\nwork that failed and was refunded\n8 left until .*\ndebit -?2\ndebit -?2\nrefund -?2\n/)
})

test('examples: hot-path', async (t) => {
  const tenant = await demoTenant(100)
  const program = await example(t, 'hot-path', [tenant])
  assert.equal(await program.exit, 0, program.output())
  assert.match(program.output(), /3 \{"taken":3,"captured":3/)
  assert.equal(await remaining(tenant), 97)
})

test('examples: webhook', async (t) => {
  const secret = `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}`
  const app = await example(t, 'webhook', [], { QUOTASVC_WEBHOOK_SECRET: secret }, true)
  const body = '{"type":"balance.exhausted","timestamp":"2026-11-25T10:00:00Z","data":{"tenant":"acme"}}'
  const at = new Date()
  const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': await new Webhook(secret).sign('evt_1', at, body) }
  const send = (text: string) => fetch(app.url, { method: 'POST', body: text, headers })
  assert.deepEqual([(await send(body)).status, (await send(body)).status, (await send(`${body} `)).status], [204, 204, 400])
  assert.equal(app.output().match(/event balance\.exhausted/g)?.length, 1)
})

test('examples: none is left out', () => {
  const files = readdirSync(`${root}examples`).filter((f) => f.endsWith('.ts')).map((f) => basename(f, '.ts'))
  assert.deepEqual([...run].sort(), files.sort())
})
