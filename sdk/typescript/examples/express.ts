// An API on Express: each request costs its tenant one call. Run: QUOTASVC_URL=... QUOTASVC_KEY=... node express.js
import express from 'express'
import { Client } from 'quotasvc'
import { quota } from 'quotasvc/express'

const client = new Client({
  failOpen: { api_calls: true }, // while quotas are away, serve
  onFailOpen: ({ items, error }) => console.log('uncharged', JSON.stringify(items), error.code),
})
const app = express()

// Your authentication comes first. Here a header names the tenant.
app.use(quota(client, { meter: 'api_calls', tenant: (req) => req.header('x-org'), cost: 1 }))

app.get('/search', (req, res) => {
  res.json({ results: [] })
})
app.get('/broken', () => {
  throw new Error('this is refunded')
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('listening', JSON.stringify(server.address())))
