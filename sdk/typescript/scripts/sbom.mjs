// Prints what the package contains (CycloneDX): itself, because it has no dependency. npm's number and time differ in each run, so they are left out.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'library', '--package-lock-only', '--omit', 'dev', '--omit', 'peer']
const { status, stdout, stderr } = spawnSync('npm', args, { cwd: fileURLToPath(new URL('..', import.meta.url)), encoding: 'utf8' })
if (status !== 0) {
  console.error(stderr)
  process.exit(1)
}
const bom = JSON.parse(stdout)
delete bom.serialNumber
delete bom.metadata.timestamp
bom.metadata.component.name = 'quotasvc' // npm takes the folder's name
console.log(JSON.stringify(bom, null, 2))
