import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LocalDenial, type LocalUnits } from 'quotasvc'
import { admin, id, newClient, newTenant, Proxy, unavailable, until, used } from './service.js'

/** Takes n units one by one, and waits for those that are on their way. */
async function takeMany(units: LocalUnits, n: number): Promise<void> {
  for (let i = 0; i < n; i++) if (units.tryTake()) await units.takeWait()
}

test('local-allowance: many takers are charged exactly what was taken, with few requests', async () => {
  const tenant = await newTenant(100_000)
  const units = newClient().localUnits({ tenant, meter: 'calls', captureEveryMs: 300 })
  await Promise.all(Array.from({ length: 8 }, () => takeMany(units, 250)))
  await units.close()
  const stats = units.stats()
  assert.deepEqual([stats.taken, stats.captured, stats.debited, stats.uncharged], [2_000, 2_000, 0, 0])
  assert.ok(stats.requests < 200, `${stats.requests} requests`)
  assert.deepEqual(await used(tenant), { used: 2_000, held: 0, remaining: 98_000 })
  assert.equal(units.tryTake()?.reason, 'closed')
})

test('local-allowance: two processes grant a balance once, to the last unit', async () => {
  const tenant = await newTenant(500)
  const [a, b] = [newClient(), newClient()].map((c) => c.localUnits({ tenant, meter: 'calls' })) as [LocalUnits, LocalUnits]
  const spend = async (units: LocalUnits) => {
    for (let taken = 0; ; taken++) {
      try {
        await units.takeWait()
      } catch (e) {
        if (e instanceof LocalDenial && e.reason === 'exhausted') return taken
        throw e
      }
    }
  }
  const taken = await Promise.all([spend(a), spend(b)])
  await Promise.all([a.close(), b.close()])
  assert.ok(taken[0] + taken[1] <= 500 && taken[0] + taken[1] >= 400, String(taken))
  assert.equal((await used(tenant)).used, taken[0] + taken[1])
  assert.equal((await used(tenant)).held, 0)
})

test('local-allowance: a denial says why, and a top-up is noticed', async () => {
  const tenant = await newTenant(0)
  const units = newClient().localUnits({ tenant, meter: 'credits' })
  await assert.rejects(units.takeWait(), (e: unknown) => e instanceof LocalDenial && e.reason === 'exhausted' && e.status === 402 && e.code === 'credits_exhausted')
  await admin.api.grant({ tenant, body: { meter: 'credits', amount: 50, source: 'topup', grant_id: id('g') } })
  await until('the top-up is noticed', async () => units.takeWait(5).then(() => true, () => false))
  await units.close()
  assert.equal((await used(tenant, 'credits')).used, 5)
})

test('local-allowance: lost answers charge once', async () => {
  const tenant = await newTenant(10_000)
  const proxy = await Proxy.start('drop-answer', 'drop-answer', 'pass', 'drop-answer')
  const units = newClient({ url: proxy.url }).localUnits({ tenant, meter: 'calls', captureEveryMs: 100 })
  await takeMany(units, 150)
  proxy.faults = ['drop-answer', 'drop-answer', 'drop-answer']
  await takeMany(units, 150)
  await units.close(30_000)
  assert.equal(units.stats().captured, 300)
  assert.deepEqual(await used(tenant), { used: 300, held: 0, remaining: 9_700 })
})

test('local-allowance: while the service is away held units are spent, then takes are refused, then it goes on', async () => {
  const tenant = await newTenant(10_000)
  const proxy = await Proxy.start()
  const units = newClient({ url: proxy.url }).localUnits({ tenant, meter: 'calls', min: 50, max: 50, captureEveryMs: 100, capMs: 200 })
  await units.takeWait()
  proxy.always = 'drop-request'
  let spent = 1
  while (!units.tryTake()) spent++
  assert.ok(spent >= 50, `${spent} units`)
  await until('the service is known to be away', () => units.tryTake()?.reason === 'away')
  proxy.always = 'pass'
  await units.takeWait()
  await units.close(30_000)
  assert.equal(units.stats().uncharged, 0)
  assert.equal((await used(tenant)).used, units.stats().taken)
})

test('local-allowance: units without a hold are bounded, and debited as far as the balance covers them', async () => {
  const tenant = await newTenant(5)
  const proxy = await Proxy.start()
  proxy.always = unavailable('1')
  const units = newClient({ url: proxy.url }).localUnits({ tenant, meter: 'calls', unbackedMax: 8, capMs: 100 })
  await until('the service is known to be away', () => units.tryTake() === undefined)
  for (let i = 1; i < 8; i++) units.take()
  assert.equal(units.tryTake()?.reason, 'away')
  proxy.always = 'pass'
  await units.close(30_000)
  const { taken, debited, shortfall } = units.stats()
  assert.deepEqual([taken, debited, shortfall], [8, 5, 3])
  assert.deepEqual(await used(tenant), { used: 5, held: 0, remaining: 0 })
})

test('retry-after: local units wait a month, which is longer than a timer can, without a request', async () => {
  const tenant = await newTenant(5)
  const proxy = await Proxy.start()
  proxy.always = unavailable('2592000')
  const warnings: string[] = []
  const note = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', note)
  const units = newClient({ url: proxy.url }).localUnits({ tenant, meter: 'calls', unbackedMax: 8 })
  await until('the service is known to be away', () => units.tryTake() === undefined)
  process.off('warning', note)
  assert.deepEqual([warnings, proxy.seen.length], [[], 1])
  proxy.always = 'pass'
  await units.close(30_000)
})

test('local-allowance: the use of a hold that ended is debited', async () => {
  const tenant = await newTenant(1_000)
  const units = newClient().localUnits({ tenant, meter: 'calls', captureEveryMs: 60_000 })
  await units.takeWait(7)
  for await (const hold of admin.list('listHolds', { tenant, status: 'active' })) {
    await admin.api.releaseHold({ hold_id: hold.hold_id, body: { tenant } }) // somebody ends it
  }
  await units.close()
  const { captured, debited } = units.stats()
  assert.deepEqual([captured, debited], [0, 7])
  assert.equal((await used(tenant)).used, 7)
})

test('local-allowance: slow use extends its hold, and an idle one is returned', async () => {
  const tenant = await newTenant(1_000)
  const units = newClient().localUnits({ tenant, meter: 'calls', ttlSeconds: 3, captureEveryMs: 200 })
  const end = Date.now() + 4_500
  while (Date.now() < end) {
    await units.takeWait()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await until('the idle hold is returned', async () => (await used(tenant)).held === 0)
  assert.equal((await used(tenant)).used, units.stats().taken)
  await units.close()
})

test('local-allowance: close without a service ends in time with an error', async () => {
  const tenant = await newTenant(1_000)
  const proxy = await Proxy.start()
  const units = newClient({ url: proxy.url }).localUnits({ tenant, meter: 'calls', captureEveryMs: 60_000 })
  await units.takeWait(3)
  proxy.always = 'hang'
  const began = Date.now()
  await assert.rejects(units.close(1_000), /3 used units were not charged/)
  assert.ok(Date.now() - began < 10_000)
})

test('local-allowance: wrong options and amounts are refused', async () => {
  const client = newClient()
  assert.throws(() => client.localUnits({ tenant: '', meter: 'calls' }), /tenant is required/)
  assert.throws(() => client.localUnits({ tenant: 't', meter: 'calls', min: 10, max: 5 }), /min must be from 1 to max/)
  assert.throws(() => client.localUnits({ tenant: 't', meter: 'calls', ttlSeconds: 0.5 }), /ttlSeconds must be from 1 to 86400/)
  const units = client.localUnits({ tenant: 't', meter: 'calls', max: 10, min: 1 })
  assert.throws(() => units.take(11), /n must be an integer from 1 to 10/)
  assert.throws(() => units.take(0), /n must be an integer from 1 to 10/)
  await units.close()
})
