/** Below it is the page of each connection, where a person finishes a login. */
export const hostedLoginPath = '/login'
