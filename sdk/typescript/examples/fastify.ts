// The same API on Fastify: quotas for all routes of a scope, and a cost by request.
import fastify from 'fastify'
import { Client } from 'quotasvc'
import { quota } from 'quotasvc/fastify'

const client = new Client()
const app = fastify()

app.get('/health', async () => 'free')
await app.register(async (paid) => {
  await paid.register(
    quota(client, {
      meter: 'api_calls',
      tenant: (req) => req.headers['x-org'] as string,
      cost: (req) => (req.method === 'POST' ? 5 : 1),
    }),
  )
  paid.get('/search', async () => ({ results: [] }))
  paid.post('/exports', async () => ({ started: true }))
})

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) })
console.log('listening', JSON.stringify(app.server.address()))
