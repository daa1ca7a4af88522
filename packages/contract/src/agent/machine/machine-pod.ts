/*
 * A machine that is a pod: its two containers, the server that speaks to them, and the image agree on this. The file has
 * no schema, because programs of the pod load it at every start of a session.
 */

/** What a server may speak to in a pod, by ALPN, over TLS with certificates on both sides. */
export const podProtocols = { agent: 'berth-agent', egress: 'berth-egress', supervisor: 'berth-supervisor' } as const
export type PodProtocol = (typeof podProtocols)[keyof typeof podProtocols]

export const podPorts = {
  /** The only one that others can reach. */
  servers: 8443,
  /** On the loopback of the pod, which programs of the machine do not have. */
  agent: 8401,
  supervisor: 8402,
} as const

/** The identities that certificates name, as URIs. */
export const serverIdentity = 'berth://server'

export function machineIdentity(machineId: string): string {
  return `berth://machine/${machineId}`
}

/** The files of an identity, in the folder that is mounted for it. */
export const identityFiles = { authority: 'ca.crt', certificate: 'tls.crt', key: 'tls.key' } as const

export const inPod = {
  /** What the machine is started with: a `MachineSpec` as JSON. */
  spec: '/run/berth/spec/spec.json',
  identity: '/run/berth/identity',
  /** Shared by the containers: egress listens in it, and the machine can only read it. */
  egress: '/run/berth/egress',
  /** The disk of the machine. */
  machine: '/var/lib/berth',
  startMachine: ['/opt/berth/node', '/opt/berth/container/start-machine.mjs'],
  startEgress: ['/opt/berth/node', '/opt/berth/egress/pod.mjs'],
} as const
