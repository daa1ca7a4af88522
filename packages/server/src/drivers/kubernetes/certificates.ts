import 'reflect-metadata' // Of the library for certificates, which does not load it itself.
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
/** Clocks of nodes differ. */
const clockSkewMilliseconds = 5 * 60_000
const authorityMilliseconds = 10 * 365 * 24 * hourMilliseconds
const serialBytes = 16

type KeyPair = webcrypto.CryptoKeyPair

cryptoProvider.set(webcrypto as Crypto)

/** What one side of a connection shows to the other. All of it is PEM. */
export interface Identity {
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

/** How long an identity lives. A renewal comes at half of it. */
export const identityLifetimeMilliseconds = 24 * hourMilliseconds

/** Certifies the servers and the machines of an installation to each other. */
export class CertificateAuthority {
  readonly certificate: string
  readonly #certificate: X509Certificate
  readonly #key: CryptoKey

  private constructor(certificate: X509Certificate, key: CryptoKey) {
    this.certificate = certificate.toString('pem')
    this.#certificate = certificate
    this.#key = key
  }

  /** Makes a new authority. Its private key is PKCS #8. */
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

  /** A machine can be called, and can call nobody. */
  issueToMachine(machineId: MachineId, now: Date): Promise<Identity> {
    return this.#issue(machineIdentity(machineId), ExtendedKeyUsage.serverAuth, now)
  }

  /** A server can call, and cannot be called in the name of a machine. */
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
        // The only name: nothing of it can be mistaken for another's.
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

/** Positive, as the standard wants it. */
function newSerial(): string {
  const bytes = randomBytes(serialBytes)
  bytes[0] = (bytes[0] ?? 0) & 0x7f
  return bytes.toString('hex')
}
