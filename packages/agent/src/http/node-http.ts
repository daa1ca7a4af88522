/**
 * Node's own http. An import would evaluate everything that it exports, including fetch and WebSocket: 30 ms and 13 MB
 * at every start of a session.
 */
export const http = process.getBuiltinModule('node:http')
