// The same API on Hono, which runs on Node, Deno, Bun, Cloudflare Workers and others.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { Client } from 'quotasvc'
import { quota } from 'quotasvc/hono'

const client = new Client()
const app = new Hono()

app.use('/v1/*', quota(client, { meter: 'api_calls', tenant: (c) => c.req.header('x-org') }))
app.get('/v1/search', (c) => c.json({ results: [] }))

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env.PORT ?? 3000) }, () =>
  console.log('listening', JSON.stringify(server.address())),
)
