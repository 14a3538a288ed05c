// Holds the SDK to internal/httpapi/reference/openapi.yaml and docs/api.md.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { codes } from 'quotasvc'
import { parse } from 'yaml'
import { admin, newClient, newTenant, Proxy } from './service.js'

const root = new URL('../../../', import.meta.url)
interface Operation {
  operationId: string
  parameters?: Parameter[]
  requestBody?: unknown
}
interface Parameter {
  $ref?: string
  name: string
  in: string
}
interface Spec {
  paths: Record<string, Record<string, Operation> & { parameters?: Parameter[] }>
  components: { parameters: Record<string, Parameter> }
}
const spec = parse(readFileSync(new URL('../../internal/httpapi/reference/openapi.yaml', root), 'utf8')) as Spec

// Gateways call these.
const left = ['authorize', 'authorizeEnvoy']

test('contract: the generated files are those of the contract', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/generate.mjs', '--check'], { cwd: fileURLToPath(root), encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})

test('contract: every operation is a method of api that sends its method, path, query and key', async () => {
  const proxy = await Proxy.start()
  proxy.always = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
  const client = newClient({ url: proxy.url })
  let count = 0
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const method of ['get', 'put', 'post', 'patch', 'delete'] as const) {
      const operation = item[method]
      if (!operation || left.includes(operation.operationId)) continue
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((p) =>
        p.$ref ? (spec.components.parameters[p.$ref.split('/').pop() as string] as Parameter) : p,
      )
      const input: Record<string, unknown> = {}
      for (const p of parameters) {
        if (p.in === 'header') continue
        assert.equal(p.name in input || p.name === 'body', false, `${operation.operationId}: two parameters are named ${p.name}`)
        input[p.name] = `${p.name}/1 ü`
      }
      if (operation.requestBody) input.body = { sent: true }
      const call = client.api[operation.operationId as 'check'] as (input: unknown) => Promise<unknown>
      assert.equal(typeof call, 'function', `${operation.operationId} is missing: npm run generate`)
      await call(input)
      const seen = proxy.seen.pop()
      const [sentPath, sentQuery] = (seen?.path ?? '').split('?')
      assert.equal(seen?.method, method.toUpperCase())
      assert.equal(sentPath, path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(`${name}/1 ü`)))
      const query = parameters.filter((p) => p.in === 'query').map((p) => p.name)
      assert.deepEqual([...new URLSearchParams(sentQuery)], query.map((name) => [name, `${name}/1 ü`]))
      assert.equal(seen?.key !== undefined, parameters.some((p) => p.in === 'header' && p.name === 'Idempotency-Key'), operation.operationId)
      assert.equal(seen?.body, operation.requestBody ? '{"sent":true}' : '')
      count++
    }
  }
  assert.equal(count, Object.keys(client.api).length)
})

test('contract: every code of docs/api.md has a type, and there are no others', () => {
  const text = readFileSync(new URL('../../docs/api.md', root), 'utf8')
  const sections = [...text.slice(text.indexOf('\n# Errors')).matchAll(/^## ([a-z_]+)$/gm)].map((m) => m[1])
  assert.deepEqual([...codes], sections.sort())
})

test('contract: the running service serves the contract that the SDK was made from', async () => {
  assert.deepEqual(parse(String(await admin.api.getSpec())), spec)
})

test('contract: the members that callers read are there in answers of the real service', async () => {
  const tenant = await newTenant()
  const items = [{ meter: 'calls', amount: 2 }]
  const checked = await admin.check({ tenant, items })
  assert.deepEqual([checked.allowed, checked.items[0]?.meter, checked.items[0]?.required], [true, 'calls', 2])
  const { results } = await admin.api.debitBatch({ body: { debits: [{ idempotency_key: `${tenant}-1`, tenant, items }] } })
  const [first] = results
  assert.equal(first?.status === 200 && first.operation_id, `${tenant}-1`)
  const { items: balances } = await admin.api.listBalances({ tenant })
  assert.deepEqual(balances.map((b) => b.meter).sort(), ['calls', 'credits'])
  const charge = await admin.api.chargeLimits({ body: { tenant, route: '/x' } })
  assert.equal(charge.allowed, true)
})
