/** The prefix of the page of each connection where a person completes a login. */
export const hostedLoginPath = '/login'
