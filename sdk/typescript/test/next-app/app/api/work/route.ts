import { withQuota } from 'quotasvc/next'
import { client } from '../../../lib/quota'

const options = { meter: 'calls', tenant: (req: Request) => req.headers.get('x-tenant') }

export const GET = withQuota(client, options, async (req) => {
  const status = Number(req.nextUrl.searchParams.get('status') ?? 200)
  if (status === 599) throw new Error('the handler failed')
  return Response.json({ ok: true }, { status })
})
