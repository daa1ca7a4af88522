import { z } from 'zod'
import type { Method } from '../../endpoint.ts'
import { defineOperation } from '../operation.ts'

const tag = 'Browsers'

const HttpUrl = z.string().refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), {
  error: 'must be a URL that begins with http:// or https://',
})

const timeoutRange = { least: 1_000, most: 60_000, default: 30_000 } as const

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\t\x20-\x7e\x80-\uffff]*$/

export const CurlRequest = z
  .strictObject({
    url: HttpUrl,
    method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']).default('GET'),
    headers: z
      .record(
        z.string().regex(headerName, { error: 'must be header names' }),
        z.string().regex(headerValue, { error: 'must be a header value without line breaks' }),
      )
      .default({})
      .meta({ description: 'Replace the headers of the browser with the same names.' }),
    body: z.string().optional(),
    timeout_ms: z.int().min(timeoutRange.least).max(timeoutRange.most).default(timeoutRange.default),
    response_encoding: z.enum(['utf8', 'base64']).default('utf8'),
  })
  .meta({ id: 'BrowserCurlRequest' })
export type CurlRequest = z.output<typeof CurlRequest>

export const CurlResult = z
  .object({
    status: z.int(),
    headers: z.record(z.string(), z.array(z.string())).meta({ description: 'By their names in lower case.' }),
    body: z.string(),
    duration_ms: z.int(),
  })
  .meta({ id: 'BrowserCurlResult' })

export const curl = defineOperation({
  operationId: 'curl',
  method: 'POST',
  path: '/curl',
  summary: 'Send an HTTP request from the browser',
  description: 'Uses its cookies, TLS, headers, proxy and cache. Follows redirects and stores cookies of the response.',
  tag,
  category: 'control',
  body: CurlRequest,
  dataFields: ['body'],
  reply: CurlResult,
  status: 200,
  errors: ['curl_failed'],
})

function rawCurl(method: Method) {
  return defineOperation({
    operationId: `rawCurl${method}`,
    method,
    path: '/curl/raw',
    summary: 'Send this request from the browser',
    tag,
    category: 'control',
    isPassThrough: true,
    query: z.object({
      url: HttpUrl,
      timeout_ms: z.coerce
        .number()
        .int()
        .min(timeoutRange.least)
        .max(timeoutRange.most)
        .default(timeoutRange.default)
        .meta({ description: 'The time limit for the response headers.' }),
    }),
    ...(method !== 'GET' && method !== 'HEAD' && { bodyType: 'application/octet-stream' as const }),
    status: 200,
    errors: ['curl_failed'],
  })
}

export const curlOperations = [curl] as const
export const rawCurlOperations = (['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const).map(rawCurl)
