/** The Web Crypto of this runtime. Node 18 has it in a module alone. */
export async function webCrypto(): Promise<Crypto> {
  if (globalThis.crypto?.subtle) return globalThis.crypto
  const name = 'node:crypto' // in a variable, so that bundlers for edge runtimes do not look for it
  const module = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as { webcrypto: Crypto }
  return module.webcrypto
}

/** Returns a new Idempotency-Key, which is also a valid id of a hold: 128 random bits. */
export async function newKey(): Promise<string> {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(16))
  return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')
}

/** Returns the SHA-256 of a text in hexadecimal. */
export async function sha256(text: string): Promise<string> {
  const digest = await (await webCrypto()).subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('')
}
