/*
 * Shared by the two containers of a machine's pod, the server that connects to them, and the image. This file has no
 * schema, because programs of the pod load it at every start of a session.
 */

/** What a server can connect to in a pod. ALPN selects it, over TLS with certificates on both sides. */
export const podProtocols = { agent: 'berth-agent', egress: 'berth-egress', supervisor: 'berth-supervisor' } as const
export type PodProtocol = (typeof podProtocols)[keyof typeof podProtocols]

export const podPorts = {
  /** The only port that is reachable from outside the pod. */
  servers: 8443,
  /** On the pod's loopback, which programs of the machine cannot reach. */
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
  /** The `MachineSpec` of the machine, as JSON. */
  spec: '/run/berth/spec/spec.json',
  identity: '/run/berth/identity',
  /** Shared by the containers: egress creates its sockets here, and the machine can only read the folder. */
  egress: '/run/berth/egress',
  /** The disk of the machine. */
  machine: '/var/lib/berth',
  startMachine: ['/opt/berth/node', '/opt/berth/container/start-machine.mjs'],
  startEgress: ['/opt/berth/node', '/opt/berth/egress/pod.mjs'],
} as const
