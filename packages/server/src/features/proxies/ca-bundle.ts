import { X509Certificate } from 'node:crypto'
import { BerthError } from '@berth/contract/errors.ts'

const certificate = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Returns the certificates of a PEM text in DER. Rejects anything but one or more CA certificates. */
export function readCaBundle(pem: string): readonly Buffer[] {
  const blocks = pem.match(certificate) ?? []
  if (blocks.length === 0) throw refused('must hold one or more certificates in PEM')
  if (/-----BEGIN/.test(pem.replaceAll(certificate, ''))) throw refused('must hold certificates alone, and no key')
  return blocks.map(readCertificate)
}

function readCertificate(block: string): Buffer {
  let parsed: X509Certificate
  try {
    parsed = new X509Certificate(block)
  } catch (cause) {
    throw refused('holds a certificate that cannot be read', cause)
  }
  if (!parsed.ca) throw refused('must hold CA certificates, and one of these is not')
  return parsed.raw
}

function refused(rule: string, cause?: unknown): BerthError {
  return new BerthError('invalid_input', { reason: `config.ca_bundle: ${rule}.` }, { cause })
}
