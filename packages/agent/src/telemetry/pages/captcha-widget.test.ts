import assert from 'node:assert/strict'
import { test } from 'node:test'
import { siteKeyIn } from './captcha-widget.ts'

for (const [type, url, key] of [
  [
    'hcaptcha',
    'https://newassets.hcaptcha.com/captcha/v1/a/static/hcaptcha.html#frame=checkbox&sitekey=10000000-ffff-ffff-ffff-000000000001&theme=light',
    '10000000-ffff-ffff-ffff-000000000001',
  ],
  ['hcaptcha', 'https://newassets.hcaptcha.com/captcha/v1/a/static/hcaptcha.html', undefined],
  [
    'recaptcha_v2',
    'https://www.google.com/recaptcha/api2/anchor?ar=1&k=6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI&size=normal',
    '6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI',
  ],
  ['recaptcha_v2', `https://www.google.com/recaptcha/api2/anchor?k=${'x'.repeat(201)}`, undefined],
  ['recaptcha_v2', 'https://www.google.com/recaptcha/api2/anchor?k=%0a{}', undefined],
  [
    'turnstile',
    'https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/rcv/x1/1x00000000000000000000AA/light/fbE/normal/auto/',
    '1x00000000000000000000AA',
  ],
  ['turnstile', 'no address', undefined],
] as const) {
  test(`the site key of ${type} in ${url.slice(0, 120)}`, () => {
    assert.equal(siteKeyIn(type, url), key)
  })
}
