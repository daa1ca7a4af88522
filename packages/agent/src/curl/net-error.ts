import { BerthError, type NetError } from '@berth/contract/errors.ts'

/** Chromium's numbers from `net_error_list.h` for errors that a request can meet. */
const numbers: Readonly<Record<string, number>> = {
  ERR_FAILED: -2,
  ERR_ABORTED: -3,
  ERR_TIMED_OUT: -7,
  ERR_ACCESS_DENIED: -10,
  ERR_BLOCKED_BY_CLIENT: -20,
  ERR_BLOCKED_BY_ADMINISTRATOR: -22,
  ERR_CONNECTION_CLOSED: -100,
  ERR_CONNECTION_RESET: -101,
  ERR_CONNECTION_REFUSED: -102,
  ERR_CONNECTION_ABORTED: -103,
  ERR_CONNECTION_FAILED: -104,
  ERR_NAME_NOT_RESOLVED: -105,
  ERR_INTERNET_DISCONNECTED: -106,
  ERR_SSL_PROTOCOL_ERROR: -107,
  ERR_ADDRESS_INVALID: -108,
  ERR_ADDRESS_UNREACHABLE: -109,
  ERR_SSL_CLIENT_AUTH_CERT_NEEDED: -110,
  ERR_TUNNEL_CONNECTION_FAILED: -111,
  ERR_SSL_VERSION_OR_CIPHER_MISMATCH: -113,
  ERR_CONNECTION_TIMED_OUT: -118,
  ERR_PROXY_AUTH_UNSUPPORTED: -115,
  ERR_PROXY_AUTH_REQUESTED: -127,
  ERR_PROXY_CONNECTION_FAILED: -130,
  ERR_CERT_COMMON_NAME_INVALID: -200,
  ERR_CERT_DATE_INVALID: -201,
  ERR_CERT_AUTHORITY_INVALID: -202,
  ERR_CERT_REVOKED: -206,
  ERR_CERT_INVALID: -207,
  ERR_CERT_WEAK_SIGNATURE_ALGORITHM: -208,
  ERR_INVALID_URL: -300,
  ERR_UNSAFE_REDIRECT: -311,
  ERR_TOO_MANY_REDIRECTS: -310,
  ERR_UNSAFE_PORT: -312,
  ERR_INVALID_RESPONSE: -320,
  ERR_INVALID_CHUNKED_ENCODING: -321,
  ERR_EMPTY_RESPONSE: -324,
  ERR_RESPONSE_HEADERS_TOO_BIG: -325,
  ERR_CONTENT_DECODING_FAILED: -330,
  ERR_INVALID_HTTP_RESPONSE: -370,
  ERR_HTTP2_PROTOCOL_ERROR: -337,
  ERR_CONTENT_LENGTH_MISMATCH: -354,
  ERR_INCOMPLETE_CHUNKED_ENCODING: -355,
}

/** `name` as Chromium reports it, with or without `net::`. */
export function netError(name: string, options: ErrorOptions = {}): BerthError {
  const bare = name.replace(/^net::/, '')
  const number = numbers[bare]
  const details: NetError = { ...(number !== undefined && { net_error: number }), net_error_name: bare }
  return new BerthError('curl_failed', { reason: bare }, { ...options, netError: details })
}
