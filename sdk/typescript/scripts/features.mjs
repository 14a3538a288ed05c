// A reporter of node --test: which features the tests show. A feature is there if it has tests and all of them passed. The name of a test
// begins with its feature: "retries: ...". The features are the same for all SDKs.
const features = [
  'idempotency', 'retries', 'budget', 'retry-after', 'timeouts', 'typed-errors', 'fail-open', 'paging', 'holds', 'refund', 'local-allowance',
  'webhooks', 'middleware',
]

export default async function* report(source) {
  const tests = new Map(features.map((f) => [f, { passed: [], failed: 0 }]))
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const [, feature, what] = /^([a-z-]+): (.+)$/s.exec(data.name) ?? []
    const row = tests.get(feature)
    if (!row || data.skip !== undefined || data.todo !== undefined) continue
    if (type === 'test:pass') row.passed.push(what)
    else row.failed++
  }
  const rows = [...tests].map(([name, { passed, failed }]) => [name, { supported: passed.length > 0 && failed === 0, tests: passed.sort() }])
  yield `${JSON.stringify({ sdk: 'typescript', package: 'quotasvc', features: Object.fromEntries(rows) }, null, 2)}\n`
}
