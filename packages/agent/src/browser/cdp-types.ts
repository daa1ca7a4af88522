import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.js'

/** Commands, responses and events of the protocol. */
export type CdpMethod = keyof ProtocolMapping.Commands
export type CdpParams<Method extends CdpMethod> = ProtocolMapping.Commands[Method]['paramsType'][0]
export type CdpAnswer<Method extends CdpMethod> = ProtocolMapping.Commands[Method]['returnType']
export type CdpEvent = keyof ProtocolMapping.Events
export type CdpEventParams<Event extends CdpEvent> = ProtocolMapping.Events[Event][0]
