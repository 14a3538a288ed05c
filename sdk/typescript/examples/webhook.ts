// A receiver of webhooks. Run: QUOTASVC_WEBHOOK_SECRET=whsec_... node webhook.js
import { createServer } from 'node:http'
import { Webhook, WebhookError } from 'quotasvc'

const webhook = new Webhook(process.env.QUOTASVC_WEBHOOK_SECRET ?? '')
const seen = new Set<string>() // your database

const server = createServer(async (req, res) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer) // the body as it came
  try {
    const event = await webhook.verify(Buffer.concat(chunks), req.headers)
    if (!seen.has(event.id)) console.log('event', event.type, JSON.stringify(event.data))
    seen.add(event.id) // a delivery may come twice
    res.writeHead(204).end()
  } catch (error) {
    res.writeHead(error instanceof WebhookError ? 400 : 500).end()
  }
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('listening', JSON.stringify(server.address())))
