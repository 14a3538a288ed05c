// The package as it is published: what npm pack makes, installed in an empty directory.
import assert from 'node:assert/strict'
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { satisfies } from 'semver'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const require = createRequire(import.meta.url)
let dir = ''
let tarball = ''

function run(command: string, args: string[], cwd = dir): SpawnSyncReturns<string> {
  return spawnSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: '' } })
}

const ok = (result: SpawnSyncReturns<string>): string => {
  assert.equal(result.status, 0, `${result.stdout}\n${result.stderr}`)
  return result.stdout
}

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'quotasvc-pack-'))
  const [packed] = JSON.parse(ok(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', dir], root))) as { filename: string }[]
  tarball = join(dir, packed?.filename ?? '')
  mkdirSync(join(dir, 'node_modules'))
  ok(run('tar', ['-xzf', tarball, '-C', dir]))
  cpSync(join(dir, 'package'), join(dir, 'node_modules/quotasvc'), { recursive: true })
})
after(() => rmSync(dir, { recursive: true, force: true }))

test('package: it has no dependency at run time, and its optional peers are types only', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, unknown>>
  assert.equal(manifest.dependencies, undefined)
  for (const name of Object.keys(manifest.peerDependencies ?? {})) {
    assert.deepEqual(manifest.peerDependenciesMeta?.[name], { optional: true }, name)
  }
})

test('package: it loads as ES modules and as CommonJS, without any framework', () => {
  const entries = ['quotasvc', 'quotasvc/express', 'quotasvc/fastify', 'quotasvc/hono', 'quotasvc/next']
  const esm = entries.map((e) => `console.log(Object.keys(await import('${e}')).length > 0)`).join('\n')
  const cjs = entries.map((e) => `console.log(Object.keys(require('${e}')).length > 0)`).join('\n')
  writeFileSync(join(dir, 'a.mjs'), esm)
  writeFileSync(join(dir, 'a.cjs'), cjs)
  for (const file of ['a.mjs', 'a.cjs']) assert.equal(ok(run(process.execPath, [file])), 'true\n'.repeat(entries.length))
})

test('package: an error of one copy is recognised by the other', () => {
  writeFileSync(join(dir, 'b.mjs'), `
    import { createRequire } from 'node:module'
    import { Client, isQuotaError } from 'quotasvc'
    const other = createRequire(import.meta.url)('quotasvc')
    const client = new other.Client({ url: 'http://127.0.0.1:9', key: 'k', retry: { attempts: 1 } })
    const error = await client.api.listMeters().catch((e) => e)
    console.log(error instanceof other.QuotaError, isQuotaError(error, 'no_answer'), typeof Client)`)
  assert.equal(ok(run(process.execPath, ['b.mjs'])), 'true true function\n')
})

test('package: the types are right for ES modules, CommonJS and bundlers', () => {
  const attw = require.resolve('@arethetypeswrong/cli/package.json').replace(/package\.json$/, 'dist/index.js')
  // node10 knows no exports: it has the main entry alone.
  ok(run(process.execPath, [attw, tarball, '--profile', 'node16'], root))
})

test('package: publint finds nothing', () => {
  const publint = require.resolve('publint').replace(/publint.*$/, 'publint/src/cli.js')
  ok(run(process.execPath, [publint, '--strict', tarball], root))
})

test('package: the lock files name no address', () => {
  for (const file of ['package-lock.json', 'test/package-lock.json']) assert.equal(/"resolved"/.test(readFileSync(join(root, file), 'utf8')), false, file)
})

test('package: what its build installs has no framework and runs on the oldest Node that it names', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string }; peerDependencies: object; version: string }
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    version: string
    packages: Record<string, { engines?: { node?: string } }>
  }
  const oldest = `${/^>=(\d+)$/.exec(manifest.engines.node)?.[1]}.20.0`
  for (const [path, { engines }] of Object.entries(lock.packages)) {
    assert.equal(Object.keys(manifest.peerDependencies).some((name) => path.endsWith(`node_modules/${name}`)), false, path)
    assert.equal(satisfies(oldest, engines?.node ?? '*'), true, `${path} needs Node ${engines?.node}`)
  }
  assert.equal(lock.version, manifest.version)
})

test('package: npm shows licence, author, source and provenance', () => {
  const manifest = JSON.parse(readFileSync(join(dir, 'package/package.json'), 'utf8')) as Record<string, unknown>
  for (const field of ['license', 'author', 'homepage', 'bugs', 'repository', 'description', 'engines']) assert.ok(manifest[field], field)
  assert.deepEqual(manifest.publishConfig, { access: 'public', provenance: true })
  assert.match(readFileSync(join(dir, 'package/LICENSE'), 'utf8'), /Apache License/)
})
