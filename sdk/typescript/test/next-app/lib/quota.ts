import { Client } from 'quotasvc'

export const client = new Client({ failOpen: { open: true } }) // QUOTASVC_URL and QUOTASVC_KEY
