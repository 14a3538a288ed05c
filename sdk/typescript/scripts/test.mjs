// Runs all tests on a real service with private PostgreSQL and Redis, and writes features.json: what the tests show.
//   node scripts/test.mjs [--update] [name of a test file]...
// --update writes features.json; without it a difference fails. With names only those files run, and features.json is left alone.
// It needs bin/quotasvc (make build) and PostgreSQL and Redis (make servers).
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = fileURLToPath(new URL('../../../bin/quotasvc', import.meta.url))
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
const tests = join(root, 'test')
const build = join(tests, 'build')
const update = process.argv.includes('--update')
const names = process.argv.slice(2).filter((a) => !a.startsWith('--'))

if (!existsSync(program)) {
  console.error('bin/quotasvc is missing: run make build, or make test-sdk-typescript')
  process.exit(1)
}

const run = (args, env = {}) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } }).status ?? 1

/** Starts the service on free ports, with its data in a temporary directory. */
async function startService() {
  const dir = await mkdtemp(join(tmpdir(), 'quotasvc-sdk-'))
  await chmod(dir, 0o755) // PostgreSQL may run as another user
  const child = spawn(program, ['dev', '--dir', dir, '--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const ready = new Promise((resolve, reject) => {
    child.stdout.on('data', (d) => (out += d).includes('Ctrl-C stops') && resolve())
    child.stderr.on('data', (d) => (err = (err + d).slice(-200_000)))
    child.once('error', reject)
    void ended.then(() => reject(new Error(`the service did not start:\n${err}`)))
    setTimeout(() => reject(new Error(`the service was not ready after 120 s:\n${err}`)), 120_000).unref()
  })
  const stop = async () => {
    child.kill('SIGINT')
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    await ended
    clearTimeout(timer)
    const postgres = await readFile(join(dir, 'postgres.path'), 'utf8').catch(() => '')
    if (postgres.trim().startsWith('/var/lib/quotasvc-dev/')) await rm(postgres.trim(), { recursive: true, force: true })
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await ready
    const serving = JSON.parse(err.split('\n').find((line) => line.includes('"msg":"serving"')))
    const password = async (name) => encodeURIComponent((await readFile(join(dir, name, 'password'), 'utf8')).trim())
    const env = {
      QUOTASVC_TEST_PROGRAM: program,
      QUOTASVC_TEST_URL: serving.api,
      QUOTASVC_TEST_KEY: (await readFile(join(dir, 'admin.key'), 'utf8')).trim(),
      QUOTASVC_TEST_DATABASE_URL: serving.database.replace('xxxxx', await password('postgres')),
      QUOTASVC_TEST_REDIS_URL: serving.redis.replace('xxxxx', await password('redis')),
    }
    return { env, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Compares features.json with the results, or writes it. */
async function features(text) {
  const file = join(root, 'features.json')
  if (update) return writeFile(file, text)
  if ((await readFile(file, 'utf8').catch(() => '')) === text) return
  console.error('features.json does not say what the tests show: run npm test -- --update in sdk/typescript, and commit it')
  process.exitCode = 1
}

/**
 * Installs the package beside the frameworks of the tests, as a user does, and compiles tests, examples and, without
 * src/frameworks.d.ts, the sources there. So all of them meet the frameworks' own types.
 */
async function compile() {
  if (run(['scripts/build.mjs']) !== 0) return false
  const installed = join(tests, 'node_modules/quotasvc')
  await rm(build, { recursive: true, force: true })
  await rm(installed, { recursive: true, force: true })
  for (const name of ['package.json', 'dist']) await cp(join(root, name), join(installed, name), { recursive: true })
  const sources = (file) => !/node_modules|next-app|test\/build|frameworks\.d\.ts$/.test(file.slice(root.length))
  for (const name of ['examples', 'src']) await cp(join(root, name), join(build, name), { recursive: true, filter: sources })
  await mkdir(join(build, 'test'))
  for (const name of (await readdir(tests)).filter((f) => f.endsWith('.ts'))) await cp(join(tests, name), join(build, 'test', name))
  return ['test/tsconfig.json', 'test/tsconfig.src.json'].every((project) => run([tsc, '-p', project]) === 0)
}

if (!(await compile())) process.exit(1)
const service = await startService()
const interrupted = () => void service.stop().then(() => process.exit(130))
process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
try {
  const all = (await readdir(join(build, 'test'))).filter((f) => f.endsWith('.test.js')).sort()
  const files = names.length === 0 ? all : all.filter((f) => names.some((n) => f.startsWith(n)))
  const results = join(build, 'features.json')
  const running = spawn(
    process.execPath,
    [
      '--test',
      '--test-concurrency=2',
      '--test-timeout=240000',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=./scripts/features.mjs',
      `--test-reporter-destination=${results}`,
      ...files.map((f) => join(build, 'test', f)),
    ],
    { cwd: root, stdio: 'inherit', env: { ...process.env, ...service.env, NEXT_TELEMETRY_DISABLED: '1' } },
  )
  const status = await new Promise((resolve) => running.once('exit', resolve))
  if (status !== 0) process.exitCode = 1
  else if (names.length === 0) await features(await readFile(results, 'utf8'))
} finally {
  await service.stop()
}
