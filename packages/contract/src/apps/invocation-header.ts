/** The invocation that sends a request to berth. The process of an app sets it. */
export const invocationHeader = 'x-berth-invocation'
