// Errors by code, a refund when the work fails, and all pages of a list. Run: node errors.js <tenant>
import { Client, isQuotaError } from 'quotasvc'

const client = new Client({ onRetry: ({ operation, waitMs }) => console.log(`${operation}: again in ${waitMs} ms`) })
const tenant = process.argv[2] ?? 'demo'
const items = [{ meter: 'api_calls', amount: 2 }]

await client.consumeFor({ tenant, items }, () => console.log('work that is paid'))
await client
  .consumeFor({ tenant, items }, () => {
    throw new Error('work that failed and was refunded')
  })
  .catch((error: Error) => console.log(error.message))

const left = (await client.check({ tenant, items })).items[0]?.remaining ?? 0
try {
  await client.consume({ tenant, items: [{ meter: 'api_calls', amount: left + 1 }] }, { retryDenied: false })
} catch (error) {
  // The code narrows the type: problem has the fields of quota_exceeded.
  if (!isQuotaError(error, 'quota_exceeded')) throw error
  console.log(`${error.problem?.available} left until ${error.problem?.reset_at}`)
}

for await (const entry of client.list('listEntries', { tenant, meter: 'api_calls', limit: 50 })) {
  if (entry.kind === 'debit' || entry.kind === 'refund') console.log(entry.kind, entry.amount)
}
