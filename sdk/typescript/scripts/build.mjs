// Compiles src twice: to ECMAScript modules in dist/esm, and to CommonJS in dist/cjs. The nearest package.json says which one a file is.
import { spawnSync } from 'node:child_process'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
await rm(`${root}dist`, { recursive: true, force: true })
await rm(`${root}build`, { recursive: true, force: true })
// For CommonJS a copy of the sources lies under a package.json with that type.
await mkdir(`${root}build/cjs`, { recursive: true })
await cp(`${root}src`, `${root}build/cjs/src`, { recursive: true })
await cp(`${root}tsconfig.json`, `${root}build/cjs/tsconfig.json`)
await writeFile(`${root}build/cjs/package.json`, '{"type": "commonjs"}\n')
for (const [project, out, type] of [['tsconfig.json', 'dist/esm', 'module'], ['build/cjs/tsconfig.json', 'dist/cjs', 'commonjs']]) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', root + project, '--outDir', root + out], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  await writeFile(`${root}${out}/package.json`, `{"type": "${type}", "sideEffects": false}\n`)
}
await rm(`${root}build`, { recursive: true, force: true })
