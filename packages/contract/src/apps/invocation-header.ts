/** Names the invocation that a request to berth is made in. The process of an app sends it. */
export const invocationHeader = 'x-berth-invocation'
