import 'reflect-metadata' // The library for certificates needs it but does not load it.
import { webcrypto } from 'node:crypto'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { cryptoProvider, PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const lifetimeMilliseconds = 24 * 3_600_000

cryptoProvider.set(webcrypto as Crypto)

/** A certificate for one host name that signs itself, and its key, as PEM. Clients trust it by having it in their list. */
export async function createServerCertificate(host: string): Promise<{ certificate: string; key: string }> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  const now = systemClock.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${host}`,
    notBefore: now,
    notAfter: new Date(now.getTime() + lifetimeMilliseconds),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: host }])],
  })
  const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
  return { certificate: certificate.toString('pem'), key: PemConverter.encode(key, PemConverter.PrivateKeyTag) }
}
