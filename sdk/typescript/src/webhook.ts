import { webCrypto } from './crypto.js'

/** What a webhook delivers. `type` names the event, for example balance.threshold_reached. */
export interface WebhookEvent<T = Record<string, unknown>> {
  type: string
  timestamp: string
  data: T
  /** The event's id (header webhook-id): the same for each delivery of the event, so remember it to handle the event once. */
  readonly id: string
}

/** Why a delivery is not genuine. Answer 400 to it. */
export class WebhookError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WebhookError'
  }
}

/** Options of the verification. */
export interface WebhookOptions {
  /** How far the delivery's time may be from this machine's clock. Default 300: more would let old deliveries be sent again. */
  toleranceSeconds?: number
}

type HeaderSource = Headers | Record<string, string | string[] | undefined>

/**
 * Verifies deliveries of webhooks by Standard Webhooks: headers webhook-id, webhook-timestamp and webhook-signature, HMAC-SHA256. Give it
 * several secrets while one is replaced.
 */
export class Webhook {
  readonly #secrets: Uint8Array[]
  readonly #toleranceMs: number

  constructor(secrets: string | string[], options: WebhookOptions = {}) {
    this.#secrets = (Array.isArray(secrets) ? secrets : [secrets]).map(decodeSecret)
    if (this.#secrets.length === 0) throw new TypeError('a webhook needs a secret')
    this.#toleranceMs = (options.toleranceSeconds ?? 300) * 1000
  }

  /** Returns the event of a genuine delivery, else throws a WebhookError. body is the request's body as it came: not parsed, not re-encoded. */
  async verify<T = Record<string, unknown>>(body: string | Uint8Array, headers: HeaderSource): Promise<WebhookEvent<T>> {
    const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => header(headers, name))
    if (!id || !timestamp || !signatures) throw new WebhookError('a header is missing: webhook-id, webhook-timestamp or webhook-signature')
    if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookError('webhook-timestamp is not a number of seconds')
    const age = Date.now() - Number(timestamp) * 1000
    if (Math.abs(age) > this.#toleranceMs) throw new WebhookError(`webhook-timestamp is ${Math.round(age / 1000)} s old: more than the tolerance`)
    const signed = content(id, timestamp, body)
    let genuine = false
    // A dozen is more than a rotation needs, and bounds the work that a stranger can cause.
    for (const signature of signatures.split(' ').slice(0, 12)) {
      const [version, text] = signature.split(',', 2)
      const given = version === 'v1' && text ? fromBase64(text) : undefined
      if (!given) continue
      for (const secret of this.#secrets) genuine = equal(given, await mac(secret, signed)) || genuine
    }
    if (!genuine) throw new WebhookError('no signature is from this secret')
    const event = parse(body) as WebhookEvent<T>
    Object.defineProperty(event, 'id', { value: id, enumerable: false })
    return event
  }

  /** Returns the webhook-signature header for a body, by the first secret. For tests of receivers. */
  async sign(id: string, at: Date, body: string | Uint8Array): Promise<string> {
    const signed = content(id, String(Math.floor(at.getTime() / 1000)), body)
    return `v1,${btoa(String.fromCharCode(...(await mac(this.#secrets[0] as Uint8Array, signed))))}`
  }
}

function decodeSecret(secret: string): Uint8Array {
  const bytes = fromBase64(secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret)
  if (!bytes || bytes.length === 0) throw new TypeError('the secret of a webhook is whsec_ and base64')
  return bytes
}

function header(headers: HeaderSource, name: string): string | undefined {
  if (typeof (headers as Headers).get === 'function') return (headers as Headers).get(name) ?? undefined
  const record = headers as Record<string, string | string[] | undefined>
  // Node has names in lower case; functions of clouds hand them on as they came.
  const value = record[name] ?? record[Object.keys(record).find((key) => key.toLowerCase() === name) ?? name]
  return Array.isArray(value) ? value[0] : value
}

const encoder = new TextEncoder()

function content(id: string, timestamp: string, body: string | Uint8Array): Uint8Array {
  const head = encoder.encode(`${id}.${timestamp}.`)
  const tail = typeof body === 'string' ? encoder.encode(body) : body
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}

async function mac(secret: Uint8Array, signed: Uint8Array): Promise<Uint8Array> {
  const { subtle } = await webCrypto()
  const key = await subtle.importKey('raw', secret as BufferSource, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', key, signed as BufferSource))
}

/** Compares in constant time. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let different = 0
  for (let i = 0; i < a.length; i++) different |= (a[i] as number) ^ (b[i] as number)
  return different === 0
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  } catch {
    return undefined
  }
}

function parse(body: string | Uint8Array): object {
  try {
    const event: unknown = JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body))
    if (typeof event === 'object' && event !== null && typeof (event as WebhookEvent).type === 'string') return event
  } catch {
    // reported below
  }
  throw new WebhookError('the body is not an event')
}
