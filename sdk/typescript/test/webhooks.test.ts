import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { Webhook, WebhookError } from 'quotasvc'
import { Webhook as Standard } from 'standardwebhooks'
import { admin, newTenant, until } from './service.js'

const secret = `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}`
const other = `whsec_${Buffer.from('another secret, of a rotation').toString('base64')}`
const body = JSON.stringify({
  type: 'balance.threshold_reached',
  timestamp: '2026-11-25T10:00:00Z',
  data: { tenant: 'acme', meter: 'api_calls', threshold: 80, used: 800, limit: 1000, remaining: 200, note: 'für Ä' },
})

function signed(at = new Date(), by = secret, id = 'evt_1', text = body): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Standard(by).sign(id, at, text),
  }
}

const refused = (promise: Promise<unknown>, why: RegExp) => assert.rejects(promise, (e: unknown) => e instanceof WebhookError && why.test(e.message))

test('webhooks: what the reference library signs is verified, from text, bytes and each kind of headers', async () => {
  const webhook = new Webhook(secret)
  const headers = signed()
  const event = await webhook.verify<{ threshold: number }>(body, headers)
  assert.deepEqual([event.type, event.id, event.data.threshold], ['balance.threshold_reached', 'evt_1', 80])
  await webhook.verify(Buffer.from(body), headers)
  await webhook.verify(body, new Headers(headers))
  await webhook.verify(body, Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replace('webhook', 'Webhook'), value])))
  await webhook.verify(body, { ...headers, 'webhook-signature': [headers['webhook-signature'] as string] })
})

test('webhooks: what this library signs is verified by the reference library', async () => {
  const at = new Date()
  const signature = await new Webhook(secret).sign('evt_2', at, body)
  const headers = { 'webhook-id': 'evt_2', 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': signature }
  assert.deepEqual(new Standard(secret).verify(body, headers), JSON.parse(body))
})

test('webhooks: during a rotation either side may have two secrets', async () => {
  const at = new Date()
  const both = { ...signed(at), 'webhook-signature': `${signed(at, other)['webhook-signature']} ${signed(at)['webhook-signature']} v1a,ed25519` }
  await new Webhook(secret).verify(body, both)
  await new Webhook([secret, other]).verify(body, signed(at, other))
  await refused(new Webhook(other).verify(body, signed(at)), /no signature is from this secret/)
})

test('webhooks: changed bodies, ids and times are refused', async () => {
  const webhook = new Webhook(secret)
  const headers = signed()
  await refused(webhook.verify(body.replace('80', '81'), headers), /no signature/)
  await refused(webhook.verify(body, { ...headers, 'webhook-id': 'evt_9' }), /no signature/)
  await refused(webhook.verify(body, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }), /no signature/)
  await refused(webhook.verify(body, { ...headers, 'webhook-signature': 'v1,%%% v1, v2,AAAA nonsense' }), /no signature/)
  await refused(webhook.verify(body, { ...headers, 'webhook-timestamp': 'soon' }), /not a number of seconds/)
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) await refused(webhook.verify(body, { ...headers, [name]: '' }), /a header is missing/)
})

test('webhooks: deliveries older or newer than five minutes are refused, unless told otherwise', async () => {
  const at = (seconds: number) => signed(new Date(Date.now() + seconds * 1000))
  const webhook = new Webhook(secret)
  await webhook.verify(body, at(-290))
  await webhook.verify(body, at(290))
  await refused(webhook.verify(body, at(-310)), /more than the tolerance/)
  await refused(webhook.verify(body, at(310)), /more than the tolerance/)
  await new Webhook(secret, { toleranceSeconds: 3_600 }).verify(body, at(-310))
})

test('webhooks: a genuine body that is no event, and an unusable secret, are refused', async () => {
  for (const text of ['[]', 'null', 'no json', '{"data":{}}']) await refused(new Webhook(secret).verify(text, signed(new Date(), secret, 'evt_1', text)), /not an event/)
  assert.throws(() => new Webhook('whsec_'), /whsec_ and base64/)
  assert.throws(() => new Webhook('not base64!'), /whsec_ and base64/)
  assert.throws(() => new Webhook([]), /needs a secret/)
})

interface Delivery {
  body: string
  headers: Record<string, string>
}

/** Whether a delivery is genuine by this secret. The reference library and this one must say the same. */
async function genuine(delivery: Delivery, by: string): Promise<boolean> {
  let standard = true
  try {
    new Standard(by).verify(delivery.body, delivery.headers)
  } catch {
    standard = false
  }
  const ours = await new Webhook(by).verify(delivery.body, delivery.headers).then(
    (event) => event.id === delivery.headers['webhook-id'],
    () => false,
  )
  assert.equal(ours, standard, `the reference library says ${standard}: ${JSON.stringify(delivery)}`)
  return ours
}

test('webhooks: what the service delivers is genuine to the reference library and to this one, before, during and after a rotation', async (t) => {
  const deliveries: Delivery[] = []
  const receiver = createServer((req, res) => {
    void text(req).then((body) => {
      deliveries.push({ body, headers: req.headers as Record<string, string> })
      res.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    receiver.closeAllConnections()
    receiver.close()
  })
  const tenant = await newTenant(10)
  const at = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`
  const { webhook_id, secret: first } = await admin.api.createWebhook({ body: { url: at, types: ['balance.threshold_reached'], tenant } })
  t.after(() => admin.api.deleteWebhook({ webhook_id }))
  const replay = () => admin.api.replayWebhook({ webhook_id, body: { from: new Date(Date.now() - 3_600_000).toISOString() } })
  /**
   * Waits for a delivery that is genuine by these secrets as `by` says. A delivery may come twice, and late, and a replay leaves one that is under way as it is:
   * then it is asked for again.
   */
  const arrives = async (secrets: string[], by: boolean[]): Promise<Delivery> => {
    let found: Delivery | undefined
    let asked = Date.now()
    await until(`a delivery arrives that is signed ${by}`, async () => {
      const delivery = deliveries.shift()
      if (!delivery) {
        if (Date.now() - asked > 1_000) {
          asked = Date.now()
          await replay()
        }
        return false
      }
      const signed = await Promise.all(secrets.map((s) => genuine(delivery, s)))
      if (signed.join() === by.join()) found = delivery
      return found !== undefined
    })
    return found as Delivery
  }

  await admin.debit({ tenant, items: [{ meter: 'calls', amount: 8 }] })
  const delivery = await arrives([first, secret], [true, false])
  const event = await new Webhook(first).verify<{ threshold: number; tenant: string }>(delivery.body, delivery.headers)
  assert.deepEqual([event.type, event.data.threshold, event.data.tenant], ['balance.threshold_reached', 80, tenant])

  const { secret: second } = await admin.api.rotateWebhook({ webhook_id, body: { overlap_seconds: 3_600 } })
  await replay()
  const both = await arrives([first, second], [true, true])
  await new Webhook([second, first]).verify(both.body, both.headers)

  const { secret: third } = await admin.api.rotateWebhook({ webhook_id, body: { overlap_seconds: 0 } })
  await replay()
  const last = await arrives([first, second, third], [false, false, true])
  assert.equal(last.headers['webhook-id'], delivery.headers['webhook-id'])
})
