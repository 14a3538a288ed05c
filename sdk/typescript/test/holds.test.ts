import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuotaExceededError } from 'quotasvc'
import { admin, newClient, newTenant, Proxy, unavailable, until, used } from './service.js'

const calls = (amount: number) => [{ meter: 'calls', amount }]

async function* tokens(...sizes: number[]): AsyncGenerator<{ text: string; tokens: number }> {
  for (const n of sizes) yield { text: 'x'.repeat(n), tokens: n }
}

test('holds: a stream captures what it used, and the rest returns', async () => {
  const tenant = await newTenant()
  const client = newClient()
  const hold = await client.hold({ tenant, items: calls(50) })
  assert.deepEqual(await used(tenant), { used: 0, held: 50, remaining: 50 })
  const passed: number[] = []
  for await (const chunk of hold.stream(tokens(3, 4, 5), (c) => c.tokens)) passed.push(chunk.tokens)
  assert.deepEqual(passed, [3, 4, 5])
  assert.deepEqual(await hold.finish(), { used: 12, charged: 12, shortfall: 0 }) // the stream has finished it
  assert.deepEqual(await used(tenant), { used: 12, held: 0, remaining: 88 })
})

test('holds: a reader that stops early pays for what was passed', async () => {
  const tenant = await newTenant()
  const hold = await newClient().hold({ tenant, items: calls(50) })
  for await (const chunk of hold.stream(tokens(3, 4, 5), (c) => c.tokens)) if (chunk.tokens === 4) break
  assert.deepEqual(await used(tenant), { used: 7, held: 0, remaining: 93 })
})

test('holds: a stream that fails pays for what was passed, and throws its own error', async () => {
  const tenant = await newTenant()
  const hold = await newClient().hold({ tenant, items: calls(50) })
  async function* broken() {
    yield 6
    throw new Error('the model broke off')
  }
  await assert.rejects(async () => {
    for await (const _ of hold.stream(broken(), (n) => n));
  }, /the model broke off/)
  assert.deepEqual(await used(tenant), { used: 6, held: 0, remaining: 94 })
})

test('holds: holdFor captures at the end, and releases a hold that was not used', async () => {
  const tenant = await newTenant()
  const client = newClient()
  const result = await client.holdFor({ tenant, items: calls(20) }, async (hold) => {
    hold.use(5)
    assert.deepEqual([hold.used, hold.left], [5, 15])
    return 'done'
  })
  assert.equal(result, 'done')
  await assert.rejects(client.holdFor({ tenant, items: calls(20) }, () => Promise.reject(new Error('nothing was done'))), /nothing was done/)
  assert.deepEqual(await used(tenant), { used: 5, held: 0, remaining: 95 })
})

test('holds: answers that are lost hold once and capture once', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('drop-answer', 'drop-answer')
  const client = newClient({ url: proxy.url })
  const hold = await client.hold({ tenant, items: calls(20) })
  assert.equal((await used(tenant)).held, 20)
  proxy.faults = ['drop-answer', 'drop-answer']
  hold.use(8)
  await hold.finish()
  assert.deepEqual(await used(tenant), { used: 8, held: 0, remaining: 92 })
})

test('holds: an end that failed can be asked for again, and takes effect once', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('pass', unavailable('31'))
  const hold = await newClient({ url: proxy.url }).hold({ tenant, items: calls(20) })
  hold.use(8)
  await assert.rejects(hold.finish(), /unavailable/)
  await hold.finish()
  await hold.finish()
  assert.deepEqual(await used(tenant), { used: 8, held: 0, remaining: 92 })
})

test('holds: use beyond the held units is charged as far as the balance covers it', async () => {
  const tenant = await newTenant(30)
  const client = newClient()
  const covered = await client.hold({ tenant, items: calls(10) })
  covered.use(15)
  assert.deepEqual(await covered.finish(), { used: 15, charged: 15, shortfall: 0 })
  const beyond = await client.hold({ tenant, items: calls(10) })
  beyond.use(25) // 15 are left
  assert.deepEqual(await beyond.finish(), { used: 25, charged: 15, shortfall: 10 })
  assert.deepEqual(await used(tenant), { used: 30, held: 0, remaining: 0 })
})

test('holds: a hold in use is extended, and the use of one that ended is debited', async () => {
  const tenant = await newTenant()
  const client = newClient()
  const hold = await client.hold({ tenant, items: calls(10), ttl_seconds: 3 })
  const ends = Date.parse(hold.answer?.expires_at ?? '')
  await until('the hold is extended', async () => Date.parse((await admin.api.getHold({ tenant, hold_id: hold.id })).expires_at) > ends)
  hold.use(4)
  await admin.api.releaseHold({ hold_id: hold.id, body: { tenant } }) // somebody else ends it
  assert.deepEqual(await hold.finish(), { used: 4, charged: 4, shortfall: 0 })
  assert.deepEqual(await used(tenant), { used: 4, held: 0, remaining: 96 })
})

test('holds: a denial is an error before the work begins', async () => {
  const tenant = await newTenant(5)
  await newClient().debit({ tenant, items: calls(1) })
  let ran = false
  await assert.rejects(newClient().holdFor({ tenant, items: calls(5) }, () => void (ran = true), { retryDenied: false }), QuotaExceededError)
  assert.equal(ran, false)
})

test('holds: wrong use is refused', async () => {
  const tenant = await newTenant()
  const hold = await newClient().hold({ tenant, items: calls(5) })
  assert.throws(() => hold.use(1.5), /amount must be an integer/)
  assert.throws(() => hold.use(-1), /amount must be an integer/)
  assert.throws(() => hold.use(1, 'credits'), /meter credits is not held/)
  await hold.release()
  assert.throws(() => hold.use(1), /has ended/)
})

test('fail-open: a hold without a service lets the work run, and debits its use at the end', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start(unavailable('31'))
  const hold = await newClient({ url: proxy.url, failOpen: { calls: true } }).hold({ tenant, items: calls(10) })
  assert.equal(hold.failedOpen, true)
  hold.use(6)
  assert.deepEqual(await hold.finish(), { used: 6, charged: 6, shortfall: 0 }) // the service is back
  assert.deepEqual(await used(tenant), { used: 6, held: 0, remaining: 94 })
})

test('refund: consumeFor takes the units back if the work fails, once, and keeps them if it succeeds', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start()
  const client = newClient({ url: proxy.url })
  assert.equal(await client.consumeFor({ tenant, items: calls(2) }, () => 'result'), 'result')
  proxy.faults = ['pass', 'drop-answer']
  await assert.rejects(
    client.consumeFor({ tenant, items: calls(5) }, () => Promise.reject(new Error('the work failed'))),
    /the work failed/,
  )
  assert.equal((await used(tenant)).remaining, 98)
  assert.equal(proxy.seen.filter((s) => s.path === '/v1/refunds').length, 2) // one answer was lost
})

test('refund: a refund that fails is told to the hook, and undo can be repeated', async () => {
  const tenant = await newTenant()
  const errors: unknown[] = []
  const proxy = await Proxy.start('pass', unavailable('31'))
  const client = newClient({ url: proxy.url, onBackgroundError: (e) => errors.push(e) })
  let operation = ''
  await assert.rejects(client.consumeFor({ tenant, items: calls(5) }, (a) => {
    operation = a.operation_id
    throw new Error('the work failed')
  }))
  assert.equal(errors.length, 1)
  assert.equal((await used(tenant)).remaining, 95)
  await client.undo(tenant, operation)
  await client.undo(tenant, operation)
  await client.undo(tenant, 'never-charged')
  assert.equal((await used(tenant)).remaining, 100)
  await client.flush()
})
