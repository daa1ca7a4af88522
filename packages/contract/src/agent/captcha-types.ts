/** The challenges whose answer is a token for a site key. Apart from the schemas, which the agent does not load. */
export const solvableCaptchaTypes = ['hcaptcha', 'recaptcha_v2', 'turnstile'] as const
export type SolvableCaptchaType = (typeof solvableCaptchaTypes)[number]
