import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { Client } from '../client.js'
import { decide, type Passed, type QuotaOptions } from './core.js'
import { pathOf } from './node.js'

export type { QuotaOptions } from './core.js'

/**
 * Returns a Fastify plugin that charges each request of the scope that registers it: `app.register(quota(client, {...}))`. It decides in
 * preHandler, after authentication in onRequest, and skips routes that do not exist.
 */
export function quota(client: Client, options: QuotaOptions<FastifyRequest>): FastifyPluginAsync {
  const plugin: FastifyPluginAsync = async (app) => {
    const passed = new WeakMap<FastifyRequest, Passed>()
    app.addHook('preHandler', async (req, reply) => {
      if (req.is404) return undefined
      const decision = await decide(client, options, req, { method: req.method, path: pathOf(req.url), ip: req.ip })
      for (const [name, value] of decision.headers) reply.header(name, value)
      if (decision.passed) {
        passed.set(req, decision)
        return undefined
      }
      return reply.code(decision.status).type('application/problem+json').send(decision.body)
    })
    app.addHook('onResponse', async (req, reply) => {
      if (reply.raw.writableFinished) void passed.get(req)?.settle(reply.statusCode)
    })
  }
  // The hooks are for the scope that registers the plugin, not for one of its own.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'quotasvc' })
}
