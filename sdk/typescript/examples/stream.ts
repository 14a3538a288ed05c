// A stream of unknown cost: hold what it may need at most, capture what it used. Run: node stream.js <tenant>
import { Client, DeniedError } from 'quotasvc'

const client = new Client()
const tenant = process.argv[2] ?? 'demo'

/** Stands for a language model. */
async function* model(): AsyncGenerator<{ text: string; tokens: number }> {
  for (const text of ['Quotas ', 'are ', 'kept.']) yield { text, tokens: 1 }
}

try {
  const hold = await client.hold({ tenant, items: [{ meter: 'api_calls', amount: 5 }] }, { retryDenied: false })
  for await (const chunk of hold.stream(model(), (c) => c.tokens)) process.stdout.write(chunk.text)
  console.log(JSON.stringify(await hold.finish()))
} catch (error) {
  if (!(error instanceof DeniedError)) throw error
  console.log('denied', error.code, error.detail)
}
