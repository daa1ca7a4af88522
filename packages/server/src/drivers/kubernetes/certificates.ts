import 'reflect-metadata' // The library for certificates needs it but does not load it.
import { randomBytes, webcrypto } from 'node:crypto'
import { machineIdentity, serverIdentity } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const hourMilliseconds = 3_600_000
/** Clocks of nodes may differ by this much. */
const clockSkewMilliseconds = 5 * 60_000
const authorityMilliseconds = 10 * 365 * 24 * hourMilliseconds
const serialBytes = 16

type KeyPair = webcrypto.CryptoKeyPair

cryptoProvider.set(webcrypto as Crypto)

/** The certificate and key of one side of a connection, as PEM. */
export interface Identity {
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

/** The lifetime of an identity. It is renewed halfway. */
export const identityLifetimeMilliseconds = 24 * hourMilliseconds

/** Issues the certificates of the servers and machines of an installation. */
export class CertificateAuthority {
  readonly certificate: string
  readonly #certificate: X509Certificate
  readonly #key: CryptoKey

  private constructor(certificate: X509Certificate, key: CryptoKey) {
    this.certificate = certificate.toString('pem')
    this.#certificate = certificate
    this.#key = key
  }

  /** Creates a new authority. Its private key is PKCS #8. */
  static async create(now: Date): Promise<{ readonly certificate: string; readonly key: Buffer }> {
    const keys = await newKeys()
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: newSerial(),
      name: 'CN=berth machines',
      notBefore: new Date(now.getTime() - clockSkewMilliseconds),
      notAfter: new Date(now.getTime() + authorityMilliseconds),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      ],
    })
    const key = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)
    return { certificate: certificate.toString('pem'), key: Buffer.from(key) }
  }

  static async load(certificate: string, key: Uint8Array<ArrayBuffer>): Promise<CertificateAuthority> {
    const loaded = await webcrypto.subtle.importKey('pkcs8', key, algorithm, false, ['sign'])
    return new CertificateAuthority(new X509Certificate(certificate), loaded as CryptoKey)
  }

  /** A machine can accept connections but not open them. */
  issueToMachine(machineId: MachineId, now: Date): Promise<Identity> {
    return this.#issue(machineIdentity(machineId), ExtendedKeyUsage.serverAuth, now)
  }

  /** A server can open connections but not accept them as a machine. */
  issueToServer(now: Date): Promise<Identity> {
    return this.#issue(serverIdentity, ExtendedKeyUsage.clientAuth, now)
  }

  async #issue(identity: string, usage: ExtendedKeyUsage, now: Date): Promise<Identity> {
    const { publicKey, privateKey } = await newKeys()
    const certificate = await X509CertificateGenerator.create({
      serialNumber: newSerial(),
      issuer: this.#certificate.subject,
      notBefore: new Date(now.getTime() - clockSkewMilliseconds),
      notAfter: new Date(now.getTime() + identityLifetimeMilliseconds),
      signingAlgorithm: algorithm,
      publicKey,
      signingKey: this.#key,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([usage], true),
        // The only name, so it cannot be mistaken for another's.
        new SubjectAlternativeNameExtension([{ type: 'url', value: identity }], true),
      ],
    })
    const key = await webcrypto.subtle.exportKey('pkcs8', privateKey)
    return {
      authority: this.certificate,
      certificate: certificate.toString('pem'),
      key: PemConverter.encode(key, PemConverter.PrivateKeyTag),
    }
  }
}

function newKeys(): Promise<KeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<KeyPair>
}

/** Positive, as the standard requires. */
function newSerial(): string {
  const bytes = randomBytes(serialBytes)
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  return bytes.toString('hex')
}
