import type { NextApiRequest } from 'next'
import { withQuotaApi } from 'quotasvc/next'
import { client } from '../../lib/quota'

const options = { meter: 'calls', cost: 2, tenant: (req: NextApiRequest) => String(req.headers['x-tenant']) }

export default withQuotaApi(client, options, (req, res) => {
  res.status(Number(req.query.status ?? 200)).json({ ok: true })
})
