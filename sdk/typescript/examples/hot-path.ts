// Thousands of decisions a second in one process, without a request for each. Run: node hot-path.js <tenant>
import { Client } from 'quotasvc'

const client = new Client()
const units = client.localUnits({ tenant: process.argv[2] ?? 'demo', meter: 'api_calls', min: 1 })

let served = 0
for (let i = 0; i < 3; i++) {
  await units.takeWait() // in a handler: if (units.tryTake()) refuse
  served++
}
await units.close() // captures what was taken, and returns the rest
console.log(served, JSON.stringify(units.stats()))
