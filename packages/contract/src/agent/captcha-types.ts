/**
 * The captchas whose solution is a token for a site key. Kept apart from the schemas, which the agent does not load.
 */
export const solvableCaptchaTypes = ['hcaptcha', 'recaptcha_v2', 'turnstile'] as const
export type SolvableCaptchaType = (typeof solvableCaptchaTypes)[number]
