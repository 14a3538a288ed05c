import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import {
  backoff, ConnectionError, ConflictError, CreditsExhaustedError, DeniedError, ForbiddenError, InvalidRequestError, isQuotaError, NotFoundError,
  QuotaError, QuotaExceededError, RateLimitedError, TimeoutError, UnauthenticatedError, UnavailableError, type RetryEvent,
} from 'quotasvc'
import { admin, id, key, newClient, newTenant, Proxy, unavailable, url, used } from './service.js'

const calls = (amount: number) => [{ meter: 'calls', amount }]

/** Returns the error of a promise that must reject with one of this library. */
async function failure(promise: Promise<unknown>): Promise<QuotaError> {
  const error = await promise.then(
    () => assert.fail('it must fail'),
    (e: unknown) => e,
  )
  assert.ok(error instanceof QuotaError, String(error))
  return error
}

test('idempotency: an answer that is lost after the service committed is asked for again with the same key, and charged once', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('drop-answer')
  const client = newClient({ url: proxy.url })
  const answer = await client.debit({ tenant, items: calls(7) })
  assert.equal(answer.items[0]?.charged, 7)
  assert.equal(answer.meta.replayed, true)
  assert.equal(answer.meta.attempts, 2)
  assert.equal(answer.operation_id, answer.meta.idempotencyKey)
  assert.equal(proxy.seen.length, 2)
  assert.equal(proxy.seen[0]?.key, proxy.seen[1]?.key)
  assert.equal(proxy.seen[0]?.body, proxy.seen[1]?.body)
  assert.equal((await used(tenant)).used, 7)
})

test('idempotency: three lost answers of a consume in a row charge once', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('drop-answer', 'drop-answer', 'drop-answer')
  await newClient({ url: proxy.url }).consume({ tenant, items: calls(3) })
  assert.equal(new Set(proxy.seen.map((s) => s.key)).size, 1)
  assert.equal(proxy.seen.filter((s) => s.forwarded).length, 4)
  assert.equal((await used(tenant)).used, 3)
})

test('idempotency: each call is an operation of its own, and a given key is one operation', async () => {
  const tenant = await newTenant()
  const client = newClient()
  await client.debit({ tenant, items: calls(1) })
  await client.debit({ tenant, items: calls(1) })
  const first = await client.debit({ tenant, items: calls(5) }, { idempotencyKey: 'order-1' })
  const second = await client.debit({ tenant, items: calls(5) }, { idempotencyKey: 'order-1' })
  assert.deepEqual([first.meta.replayed, second.meta.replayed], [false, true])
  assert.deepEqual(second, first)
  assert.equal(JSON.stringify(first).includes('meta'), false)
  assert.equal((await used(tenant)).used, 7)
})

test('idempotency: an operation whose outcome stayed unknown can be finished with the key of its error', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('drop-answer')
  const client = newClient({ url: proxy.url, retry: { attempts: 1 } })
  const error = await failure(client.debit({ tenant, items: calls(4) }))
  assert.equal(error.outcomeUnknown, true)
  const answer = await client.debit({ tenant, items: calls(4) }, { idempotencyKey: error.idempotencyKey })
  assert.equal(answer.meta.replayed, true)
  assert.equal((await used(tenant)).used, 4)
})

test('idempotency: a PATCH, which has no key, is not sent twice', async () => {
  const proxy = await Proxy.start('drop-request')
  const client = newClient({ url: proxy.url })
  const error = await failure(client.api.patchWebhook({ webhook_id: 'w', body: { status: 'active' } }))
  assert.ok(error instanceof ConnectionError)
  assert.equal(proxy.seen.length, 1)
})

test('retries: 502, 503, 504 and broken connections are tried again', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start({ status: 502, body: 'bad gateway' }, { status: 504 }, 'drop-request', { status: 503 })
  const events: RetryEvent[] = []
  const answer = await newClient({ url: proxy.url, onRetry: (e) => events.push(e) }).debit({ tenant, items: calls(1) })
  assert.equal(answer.meta.attempts, 5)
  assert.deepEqual(events.map((e) => e.attempt), [1, 2, 3, 4])
  assert.deepEqual(events.map((e) => e.error.code), ['not_the_service', 'not_the_service', 'no_answer', 'not_the_service'])
  assert.equal((await used(tenant)).used, 1)
})

test('retries: at most five attempts, then the last error', async () => {
  const proxy = await Proxy.start()
  proxy.always = { status: 503 }
  const error = await failure(newClient({ url: proxy.url }).check({ tenant: 'x', items: calls(1) }))
  assert.ok(error instanceof UnavailableError)
  assert.equal(error.attempts, 5)
  assert.equal(proxy.seen.length, 5)
})

test('retries: 500 and 4xx are final', async () => {
  const proxy = await Proxy.start()
  const client = newClient({ url: proxy.url })
  for (const status of [400, 404, 409, 422, 500]) {
    proxy.seen.length = 0
    proxy.always = { status }
    assert.equal((await failure(client.debit({ tenant: 'x', items: calls(1) }))).httpStatus, status)
    assert.equal(proxy.seen.length, 1, `status ${status}`)
  }
})

test('retries: waits have full jitter: 0 to a bound that doubles, on top of Retry-After', () => {
  const bound = (retry: number, afterMs = 0) => backoff(retry, afterMs, 100, 10_000, () => 1)
  assert.deepEqual([1, 2, 3, 7, 8, 60].map((n) => bound(n)), [100, 200, 400, 6_400, 10_000, 10_000])
  assert.equal(backoff(5, 0, 100, 10_000, () => 0), 0)
  assert.equal(backoff(1, 2_000, 100, 10_000, () => 0.5), 2_050)
  const random = Array.from({ length: 200 }, () => backoff(3, 0, 100, 10_000))
  assert.ok(random.every((w) => w >= 0 && w <= 400) && Math.max(...random) > 200 && Math.min(...random) < 200)
})

test('retries: a redirect is refused with the address, and not followed', async () => {
  const proxy = await Proxy.start({ status: 301, headers: { location: 'https://elsewhere.example/' } })
  const error = await failure(newClient({ url: proxy.url }).debit({ tenant: 'x', items: calls(1) }))
  assert.match(error.message, /redirected to https:\/\/elsewhere\.example\//)
  assert.equal(proxy.seen.length, 1)
})

test('budget: retries of a client are at most ten beyond a tenth of its calls', async () => {
  const proxy = await Proxy.start()
  proxy.always = { status: 503 }
  const client = newClient({ url: proxy.url, retry: { baseMs: 0, capMs: 0 } })
  for (let i = 0; i < 40; i++) await failure(client.check({ tenant: 'x', items: calls(1) }))
  assert.ok(proxy.seen.length <= 40 + 10 + 4, `${proxy.seen.length} requests for 40 calls`)
  assert.ok(proxy.seen.length >= 40 + 10, `${proxy.seen.length} requests for 40 calls`)
})

test('budget: a short failure is retried by all calls', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start(...Array<'drop-request'>(10).fill('drop-request'))
  const client = newClient({ url: proxy.url })
  const answers = await Promise.all(Array.from({ length: 10 }, () => client.debit({ tenant, items: calls(1) })))
  assert.ok(answers.length === 10)
  assert.equal((await used(tenant)).used, 10)
})

test('retry-after: no retry comes earlier than a 503 asks', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start(unavailable('1'))
  await newClient({ url: proxy.url }).debit({ tenant, items: calls(1) })
  const [first, second] = proxy.seen
  assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 995, `${(second?.at ?? 0) - (first?.at ?? 0)} ms`)
})

test('retry-after: a date counts from the Date of the same answer', async () => {
  const tenant = await newTenant()
  const headers = { date: 'Wed, 21 Oct 2015 07:28:00 GMT', 'retry-after': 'Wed, 21 Oct 2015 07:28:01 GMT' }
  const proxy = await Proxy.start({ status: 503, headers })
  const waits: number[] = []
  await newClient({ url: proxy.url, onRetry: (e) => waits.push(e.waitMs) }).debit({ tenant, items: calls(1) })
  assert.ok(waits.length === 1 && (waits[0] ?? 0) >= 1_000 && (waits[0] ?? 0) <= 1_100, String(waits))
})

test('retry-after: a wait beyond maxWaitMs ends the call at once', async () => {
  const proxy = await Proxy.start(unavailable('31'))
  const error = await failure(newClient({ url: proxy.url }).debit({ tenant: 'x', items: calls(1) }))
  assert.equal(error.retryAfterMs, 31_000)
  assert.equal(proxy.seen.length, 1)
})

test('retry-after: a wait beyond all bounds is the longest one, not none', async () => {
  for (const [text, ms] of [['2147483648', 2147483648e3], ['6324480000', 6324480000e3], ['9'.repeat(400), Number.MAX_SAFE_INTEGER]] as const) {
    const proxy = await Proxy.start(unavailable(text))
    const error = await failure(newClient({ url: proxy.url }).debit({ tenant: 'x', items: calls(1) }))
    assert.equal(error.retryAfterMs, ms)
    assert.equal(proxy.seen.length, 1, text)
  }
})

test('retry-after: a real rate limit is waited for, and retryDenied: false answers at once', async () => {
  const rule = id('r')
  const tenant = await newTenant(100, [{ rule, per: ['tenant'], kind: 'token_bucket', rate: '1/s', burst: 1 }])
  const client = newClient({ timeoutMs: 20_000 })
  await client.consume({ tenant, items: calls(1) })
  const denied = await failure(client.consume({ tenant, items: calls(1) }, { retryDenied: false }))
  assert.ok(denied instanceof RateLimitedError && denied.retryAfterMs >= 1_000)
  const answer = await client.consume({ tenant, items: calls(1) })
  assert.equal(answer.items[0]?.charged, 1)
  assert.equal((await used(tenant)).used, 2)
})

test('timeouts: an attempt without an answer ends after timeoutMs, and is tried again', async () => {
  const tenant = await newTenant()
  const proxy = await Proxy.start('hang')
  const answer = await newClient({ url: proxy.url }).debit({ tenant, items: calls(1) }, { timeoutMs: 3_000 })
  assert.equal(answer.meta.attempts, 2)
})

test('timeouts: deadlineMs bounds a call with all its attempts', async () => {
  const proxy = await Proxy.start()
  proxy.always = 'hang'
  const began = Date.now()
  const error = await failure(newClient({ url: proxy.url, timeoutMs: 400, deadlineMs: 1_000 }).debit({ tenant: 'x', items: calls(1) }))
  assert.ok(error instanceof TimeoutError && error.code === 'timeout' && error.outcomeUnknown)
  assert.ok(Date.now() - began < 5_000)
  assert.ok(error.attempts >= 2)
})

test('timeouts: a wait that would pass the deadline is not begun', async () => {
  const proxy = await Proxy.start(unavailable('20'))
  const began = Date.now()
  await failure(newClient({ url: proxy.url }).debit({ tenant: 'x', items: calls(1) }, { deadlineMs: 10_000 }))
  assert.ok(Date.now() - began < 8_000)
  assert.equal(proxy.seen.length, 1)
})

test('timeouts: a signal ends a call in an attempt and in a wait, with its reason', async () => {
  const proxy = await Proxy.start('hang', unavailable('20'))
  const client = newClient({ url: proxy.url })
  for (let i = 0; i < 2; i++) {
    const controller = new AbortController()
    const reason = new Error('the user left')
    setTimeout(() => controller.abort(reason), 200)
    await assert.rejects(client.debit({ tenant: 'x', items: calls(1) }, { signal: controller.signal }), reason)
  }
  await assert.rejects(client.debit({ tenant: 'x', items: calls(1) }, { signal: AbortSignal.abort(new Error('before')) }), /before/)
  assert.equal(proxy.seen.length, 2)
})

test('typed-errors: each refusal of the service has its class, its code and its details', async () => {
  const tenant = await newTenant(5)
  const client = newClient()
  const debit = (amount: number, meter = 'calls') => client.debit({ tenant, items: [{ meter, amount }] }, { retryDenied: false })

  await debit(1)
  const exceeded = await failure(debit(5))
  assert.ok(exceeded instanceof QuotaExceededError && exceeded instanceof DeniedError)
  assert.deepEqual([exceeded.httpStatus, exceeded.code, exceeded.problem?.required, exceeded.problem?.available], [429, 'quota_exceeded', 5, 4])
  assert.equal(exceeded.problem?.limiting.meter, 'calls')
  assert.ok(exceeded.retryAfterMs > 0 && exceeded.requestId !== '')
  assert.equal(exceeded.headers.get('x-quota-remaining'), '4')

  const exhausted = await failure(debit(1, 'credits'))
  assert.ok(exhausted instanceof CreditsExhaustedError)
  assert.deepEqual([exhausted.httpStatus, exhausted.problem?.reset_at], [402, null])

  const { operation_id } = await debit(2)
  const table: [string, number, new (init: never) => QuotaError, () => Promise<unknown>][] = [
    ['tenant_not_found', 404, NotFoundError, () => client.debit({ tenant: 'nobody', items: calls(1) })],
    ['meter_not_in_plan', 403, ForbiddenError, async () => (await admin.api.putMeter({ meter: 'other', body: { unit: 'x' } }), debit(1, 'other'))],
    ['not_found', 404, NotFoundError, () => client.api.getMeter({ meter: 'no-such-meter' })],
    ['idempotency_key_reused', 422, InvalidRequestError, () => client.debit({ tenant, items: calls(1) }, { idempotencyKey: operation_id })],
    ['refund_exceeds_debit', 422, InvalidRequestError, () => client.refund({ tenant, operation_id, amount: 3 })],
    ['operation_not_found', 404, NotFoundError, () => client.refund({ tenant, operation_id: 'never' })],
    ['hold_not_found', 404, NotFoundError, () => client.api.releaseHold({ hold_id: 'never', body: { tenant } })],
    ['precondition_failed', 409, ConflictError, () => client.api.patchTenant({ tenant, body: { timezone: 'UTC' } }, { ifMatch: '"999"' })],
    ['unauthenticated', 401, UnauthenticatedError, () => newClient({ key: 'wrong-key' }).api.getTenant({ tenant })],
  ]
  for (const [code, status, kind, call] of table) {
    const error = await failure(call())
    assert.deepEqual([error.code, error.httpStatus, error.constructor], [code, status, kind])
    assert.equal(isQuotaError(error, code as 'not_found'), true)
    assert.equal(error.outcomeUnknown, false)
  }
})

test('typed-errors: invalid input names each wrong field, and codes narrow the type of the problem', async () => {
  const error = await failure(newClient().debit({ tenant: 'demo', items: [{ meter: 'calls', amount: 0 }] }))
  assert.ok(error instanceof InvalidRequestError)
  if (!isQuotaError(error, 'invalid_argument')) return assert.fail(error.code)
  assert.equal(error.problem?.errors[0]?.field, 'items[0].amount') // typed as present
  assert.equal(isQuotaError(error, 'rate_limited'), false)
  assert.equal(isQuotaError(new Error('other')), false)
})

test('typed-errors: no answer at all says so, and whether the operation may have taken effect', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const refused = await failure(newClient({ url: `http://127.0.0.1:${port}`, retry: { attempts: 2 } }).debit({ tenant: 'x', items: calls(1) }))
  assert.ok(refused instanceof ConnectionError && refused.code === 'no_answer')
  assert.deepEqual([refused.httpStatus, refused.outcomeUnknown, refused.attempts], [0, false, 2])

  const proxy = await Proxy.start('drop-request', unavailable('1'), { status: 422 })
  const broken = await failure(newClient({ url: proxy.url, retry: { attempts: 1 } }).debit({ tenant: 'x', items: calls(1) }))
  assert.equal(broken.outcomeUnknown, true)
  const after = await failure(newClient({ url: proxy.url, retry: { attempts: 1 } }).debit({ tenant: 'x', items: calls(1) }))
  assert.deepEqual([after.code, after.outcomeUnknown], ['unavailable', false])
  for (const fault of ['drop-request', { status: 502 }, { status: 500 }] as const) {
    const read = await Proxy.start(fault)
    const failed = await failure(newClient({ url: read.url, retry: { attempts: 1 } }).api.getTenant({ tenant: 'x' }))
    assert.equal(failed.outcomeUnknown, false, 'a read has no outcome')
  }
})

test('typed-errors: wrong options and parameters are refused before a request', async () => {
  assert.throws(() => newClient({ url: 'localhost:8080' }), /url must begin with http/)
  assert.throws(() => newClient({ key: '' }), /key must be set/)
  assert.throws(() => newClient({ timeoutMs: 0 }), /timeoutMs must be from 1/)
  const client = newClient()
  await assert.rejects(client.api.getMeter({} as never), /getMeter: meter is required/)
  await assert.rejects(client.api.listMeters({ colour: 'red' } as never), /listMeters has no parameter colour/)
  await assert.rejects(client.debit({ tenant: 'x', items: calls(1) }, { idempotencyKey: 'two words' }), /idempotencyKey must be 1 to 255 visible ASCII/)
})

test('paging: list goes through all pages, in order, and each item once', async () => {
  const tenant = await newTenant(1000)
  const client = newClient()
  for (let i = 1; i <= 7; i++) await client.debit({ tenant, items: calls(i) })
  const amounts: number[] = []
  for await (const entry of client.list('listEntries', { tenant, meter: 'calls', kind: 'debit', limit: 2 })) amounts.push(entry.amount)
  assert.deepEqual(amounts.map(Math.abs), [1, 2, 3, 4, 5, 6, 7])
  const tenants: string[] = []
  for await (const item of client.list('listTenants', { limit: 1 })) {
    tenants.push(item.tenant)
    if (tenants.length === 3) break // stops asking
  }
  assert.equal(new Set(tenants).size, 3)
})

test('paging: a page whose answer is lost is asked for again', async () => {
  const tenant = await newTenant(1000)
  for (let i = 1; i <= 5; i++) await newClient().debit({ tenant, items: calls(i) })
  const proxy = await Proxy.start('pass', 'drop-answer', 'pass', { status: 503 })
  const amounts: number[] = []
  const client = newClient({ url: proxy.url })
  for await (const entry of client.list('listEntries', { tenant, meter: 'calls', kind: 'debit', limit: 2 })) amounts.push(Math.abs(entry.amount))
  assert.deepEqual(amounts, [1, 2, 3, 4, 5])
})

test('odd metadata is read as it was sent', async () => {
  const file = new URL('../../../../../internal/lab/testenv/testdata/odd-metadata.jsonl', import.meta.url)
  const values = (await readFile(file, 'utf8')).trim().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
  const same = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? {})) // JSON has no -0
  const tenant = await newTenant(1000)
  for (const [n, metadata] of values.entries()) {
    await newClient().debit({ tenant, items: calls(1), metadata }, { idempotencyKey: `odd-${n}` })
    await admin.api.patchTenant({ tenant, body: { metadata } })
    assert.deepEqual(same((await admin.api.getTenant({ tenant })).metadata), same(metadata))
  }
  const found = new Map<string, unknown>()
  for await (const entry of admin.list('listEntries', { tenant, meter: 'calls', kind: 'debit' })) found.set(entry.operation_id ?? '', entry.metadata)
  for (const [n, metadata] of values.entries()) assert.deepEqual(same(found.get(`odd-${n}`)), same(metadata))
})

test('the answers of other kinds: CSV, 204, times as Date, text', async () => {
  const tenant = await newTenant()
  await newClient().debit({ tenant, items: calls(1) })
  const csv: unknown = await admin.api.getStatement({ tenant, meter: 'calls', period_start: 'current', format: 'csv' })
  assert.ok(typeof csv === 'string' && csv.includes(','))
  const balance = await admin.api.getBalance({ tenant, meter: 'calls', as_of: new Date(Date.now() - 1).toISOString() })
  assert.equal(typeof balance.remaining, 'number')
  const rule = id('rule')
  await admin.api.putLimit({ rule, body: { per: ['tenant'], match: { tenant }, kind: 'token_bucket', rate: '1/s' } })
  assert.equal(await admin.api.deleteLimit({ rule }), undefined)
  assert.ok(String(await admin.api.getSpec()).startsWith('openapi:'))
  assert.ok(key.length > 0 && url.length > 0)
})

test('parameters: each member of an object is a parameter of its own', async () => {
  const tenant = await newTenant()
  await admin.api.patchTenant({ tenant, body: { metadata: { segment: tenant, vip: true } } })
  const of = async (metadata: Record<string, string>) => (await admin.api.listTenants({ metadata })).items.map((t) => t.tenant)
  assert.deepEqual(await of({ segment: tenant, vip: 'true' }), [tenant])
  assert.deepEqual(await of({ segment: tenant, vip: 'false' }), [])
})
