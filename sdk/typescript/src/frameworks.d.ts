// The parts of the frameworks that the middleware uses, so that the package is built without them. Nothing of this is published: a
// user's compiler reads the framework's own types. The tests compile the middleware with those (test/tsconfig.src.json).

declare module 'express' {
  export interface Request {
    method: string
    baseUrl: string
    path: string
    ip?: string | undefined
  }
  interface Response {
    statusCode: number
    setHeader(name: string, value: string): unknown
    end(body: string): unknown
    once(event: 'finish', listener: () => void): unknown
  }
  export type RequestHandler = (req: Request, res: Response, next: (error?: unknown) => void) => void
}

declare module 'fastify' {
  export interface FastifyRequest {
    method: string
    url: string
    ip: string
    is404: boolean
  }
  interface FastifyReply {
    statusCode: number
    raw: { writableFinished: boolean }
    header(name: string, value: string): unknown
    code(status: number): this
    type(contentType: string): this
    send(body: string): this
  }
  interface FastifyInstance {
    addHook(name: 'preHandler', hook: (req: FastifyRequest, reply: FastifyReply) => Promise<unknown>): unknown
    addHook(name: 'onResponse', hook: (req: FastifyRequest, reply: FastifyReply) => Promise<void>): unknown
  }
  export type FastifyPluginAsync = (app: FastifyInstance) => Promise<void>
}

declare module 'hono' {
  export interface Env {
    Variables?: object
  }
  export interface Context<E extends Env = Env> {
    env?: E
    req: { method: string; path: string }
    res: Response
    header(name: string, value: string): void
  }
  export type MiddlewareHandler<E extends Env = Env> = (c: Context<E>, next: () => Promise<void>) => Promise<Response | void>
}

declare module 'next' {
  export interface NextApiRequest {
    method?: string | undefined
    url?: string | undefined
  }
  interface NextApiResponse {
    statusCode: number
    setHeader(name: string, value: string): unknown
    end(body: string): unknown
    once(event: 'finish', listener: () => void): unknown
  }
  export type NextApiHandler<T = unknown> = (req: NextApiRequest, res: NextApiResponse & { body?: T }) => unknown
}

declare module 'next/server.js' {
  export interface NextRequest {
    method: string
    url: string
  }
}
