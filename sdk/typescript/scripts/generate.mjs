// Writes src/*.gen.ts from the service's contract: the types, the table of operations, and the codes of errors. With --check it writes
// nothing and fails if a file is out of date.
import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'
import { parse } from 'yaml'

const root = new URL('../../../', import.meta.url)
const source = new URL('internal/httpapi/reference/openapi.yaml', root)
const spec = parse(await readFile(source, 'utf8'))

// A choice between required properties says nothing in a type but "unknown": the types leave it out, and the service checks it.
function withoutChoices(node) {
  if (Array.isArray(node)) return node.map(withoutChoices)
  if (typeof node !== 'object' || node === null) return node
  const choice = Array.isArray(node.anyOf) && node.anyOf.every((part) => Object.keys(part).join() === 'required')
  return Object.fromEntries(Object.entries(node).filter(([name]) => !(choice && name === 'anyOf')).map(([name, part]) => [name, withoutChoices(part)]))
}

const header = (what) =>
  `// ${what}\n// Written by scripts/generate.mjs from internal/httpapi/reference/openapi.yaml. Do not edit: npm run generate.\n\n`

// A POST without Idempotency-Key that can be sent twice and takes effect once: it changes nothing, has keys in its body, or sets a state.
const repeatable = ['check', 'checkBatch', 'debitBatch', 'refundCharge', 'settleCharge', 'renewLease', 'resetLimit', 'applyCatalog']

// Gateways call these with headers alone; a program calls check, consume and chargeLimits.
const forGateways = ['authorize', 'authorizeEnvoy']

const resolve = (node) => (node?.$ref ? node.$ref.slice(2).split('/').reduce((at, name) => at[name], spec) : node)

function operations() {
  const rows = []
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const method of ['get', 'put', 'post', 'patch', 'delete']) {
      const operation = item[method]
      if (!operation || forGateways.includes(operation.operationId)) continue
      const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolve)
      const query = parameters.filter((p) => p.in === 'query').map((p) => p.name)
      const key = parameters.some((p) => p.in === 'header' && p.name === 'Idempotency-Key')
      const success = Object.entries(operation.responses).filter(([status]) => status.startsWith('2')).map(([, r]) => resolve(r))
      const json = success.map((r) => resolve(r.content?.['application/json']?.schema)).find(Boolean)
      const pages = Boolean(json?.properties?.items && json.properties.next_cursor && query.includes('cursor'))
      const safe = method === 'get' || method === 'put' || method === 'delete' || repeatable.includes(operation.operationId)
      rows.push(
        `  ${operation.operationId}: {method: '${method.toUpperCase()}', path: '${path}', query: [${query.map((q) => `'${q}'`).join(', ')}], ` +
          `key: ${key}, safe: ${safe}, pages: ${pages}},`,
      )
    }
  }
  return rows
}

// The codes are the sections of docs/api.md after "# Errors".
async function codes() {
  const text = await readFile(new URL('docs/api.md', root), 'utf8')
  const errors = text.slice(text.indexOf('\n# Errors'))
  return [...errors.matchAll(/^## ([a-z_]+)$/gm)].map((m) => m[1]).sort()
}

const files = {
  'openapi.gen.ts':
    header('The types of the contract.') + astToString(await openapiTS(withoutChoices(spec), { alphabetize: false, defaultNonNullable: false })),
  'operations.gen.ts':
    header('The operations of the contract. key: the operation takes an Idempotency-Key. safe: it can be sent twice without one.') +
    `export const operationTable = {\n${operations().join('\n')}\n} as const\n`,
  'codes.gen.ts':
    header('The codes of errors, as in docs/api.md.') +
    `export const codes = [\n${(await codes()).map((c) => `  '${c}',`).join('\n')}\n] as const\n`,
}

const check = process.argv.includes('--check')
for (const [name, text] of Object.entries(files)) {
  const file = new URL(`../src/${name}`, import.meta.url)
  if (!check) {
    await writeFile(file, text)
  } else if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
    console.error(`src/${name} is out of date: run npm run generate in sdk/typescript, and commit it`)
    process.exitCode = 1
  }
}
