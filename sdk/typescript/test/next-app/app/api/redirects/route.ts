import { redirect } from 'next/navigation'
import { withQuota } from 'quotasvc/next'
import { client } from '../../../lib/quota'

export const GET = withQuota(client, { meter: 'calls', tenant: (req) => req.headers.get('x-tenant') }, () => redirect('/elsewhere'))
