import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CreditsExhaustedError, UnavailableError, type FailOpenEvent } from 'quotasvc'
import { key, newClient, newTenant, Proxy, startInstance, unavailable, until, used } from './service.js'

const calls = (amount: number) => [{ meter: 'calls', amount }]

test('fail-open: a killed service lets the meters pass that are marked, tells the hook, and charges nothing', async () => {
  const tenant = await newTenant()
  const instance = await startInstance()
  const events: FailOpenEvent[] = []
  const client = newClient({ url: instance.url, key, failOpen: { calls: true }, onFailOpen: (e) => events.push(e) })
  try {
    const before = await client.consume({ tenant, items: calls(2) })
    assert.equal(before.meta.failedOpen, false)
  } finally {
    await instance.kill()
  }
  const answer = await client.consume({ tenant, items: calls(3) })
  assert.deepEqual([answer.meta.failedOpen, answer.operation_id, answer.items[0]?.charged, answer.items[0]?.shortfall], [true, '', 0, 3])
  const checked = await client.check({ tenant, items: calls(3) })
  assert.deepEqual([checked.allowed, checked.degraded, checked.meta.failedOpen], [true, true, true])
  await assert.rejects(client.consume({ tenant, items: [{ meter: 'credits', amount: 1 }] }), UnavailableError)
  await assert.rejects(client.consume({ tenant, items: [...calls(1), { meter: 'credits', amount: 1 }] }), UnavailableError)
  assert.deepEqual(events.map((e) => [e.operation, e.tenant, e.items]), [['consume', tenant, calls(3)], ['check', tenant, calls(3)]])
  assert.ok(events.every((e) => e.error instanceof UnavailableError))
  assert.equal((await used(tenant)).used, 2)
})

test('fail-open: off by default, and a denial or a wrong request never passes', async () => {
  const tenant = await newTenant(1)
  const proxy = await Proxy.start(unavailable('31'))
  await assert.rejects(newClient({ url: proxy.url }).debit({ tenant, items: calls(1) }), UnavailableError)
  const open = newClient({ url: proxy.url, failOpen: true })
  await assert.rejects(open.debit({ tenant, items: calls(2) }, { retryDenied: false }), CreditsExhaustedError)
  await assert.rejects(open.debit({ tenant: 'nobody', items: calls(2) }), /tenant_not_found/)
  proxy.faults = [unavailable('31'), unavailable('31')]
  assert.equal((await open.debit({ tenant, items: calls(1) })).meta.failedOpen, true)
  await assert.rejects(open.debit({ tenant, items: calls(1) }, { failOpen: false }), UnavailableError)
})

test('fail-open: a service that hangs delays a few calls, then one each second, and is noticed when it is back', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start()
  proxy.always = 'hang'
  const client = newClient({ url: proxy.url, failOpen: true, timeoutMs: 2_000, deadlineMs: 2_000, onFailOpen: () => { throw new Error('a hook fails') } })
  await Promise.all(Array.from({ length: 5 }, () => client.consume({ tenant, items: calls(1) })))
  const sent = proxy.seen.length
  for (let i = 0; i < 100; i++) assert.equal((await client.consume({ tenant, items: calls(1) })).meta.failedOpen, true)
  assert.ok(proxy.seen.length - sent <= 3, `${proxy.seen.length - sent} requests of 100 calls`)
  proxy.always = 'pass'
  await until('calls are decided again', async () => !(await client.consume({ tenant, items: calls(1) })).meta.failedOpen)
})
