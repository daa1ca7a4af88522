import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'
import { launchDesktopBrowser } from './testing/browsers/desktop-browser.ts'
import { desktop, fits, passesAxe, phone, take } from './testing/dashboard.ts'
import { hostName } from './testing/pages.ts'

/*
 * The appearance of the hosted login page in each state, with states given by the test. managed-auth.test.ts tests
 * complete logins on it.
 */

const berth = await Berth.borrow()
after(() => berth[Symbol.asyncDispose]())

const input = { flow_status: 'IN_PROGRESS', flow_step: 'AWAITING_INPUT', interaction_id: 'question' }
const external = { ...input, flow_step: 'AWAITING_EXTERNAL_ACTION' }
const mfa = (id: string, label: string, more: object) => ({ id, label, type: 'mfa_method', ...more })
const long = 'a-very-long-name-without-any-place-to-break-'.repeat(4)

/** States of a login as the page receives them. */
const loginStates: Readonly<Record<string, object>> = {
  discovering: { flow_status: 'IN_PROGRESS', flow_step: 'DISCOVERING' },
  refused: {
    ...input,
    website_error: 'The e-mail address or the password is wrong.',
    fields: [
      { id: 'f0', type: 'identifier', reason: 'missing', label: 'E-mail address', input_mode: 'email' },
      { id: 'f1', type: 'password', reason: 'rejected', label: 'Password', hint: 'At least 8 characters.' },
      { id: 'f2', type: 'text', reason: 'missing', required: false },
    ],
    choices: [
      { id: 'c0', label: 'Continue with Acme', type: 'sso_provider' },
      { id: 'c1', label: long, type: 'sign_in_method' },
    ],
    live_view_url: 'about:blank',
  },
  'right-to-left': {
    ...input,
    website_error: 'كلمة المرور غير صحيحة',
    fields: [{ id: 'f0', type: 'password', reason: 'missing', label: 'كلمة المرور' }],
    choices: [{ id: 'c0', label: 'تسجيل الدخول برمز', type: 'sign_in_method' }],
  },
  methods: {
    ...input,
    choices: [
      mfa('c0', 'Try another way', { mfa_type: 'switch' }),
      mfa('c1', 'Text message', { mfa_type: 'sms', masked_destination: '••• ••42' }),
      mfa('c2', 'Authenticator app', { mfa_type: 'totp' }),
    ],
  },
  external: {
    ...external,
    external_action_message: 'Open the app on your phone and choose 42.',
    choices: [mfa('c0', 'Use a code', { mfa_type: 'totp' })],
  },
  success: { flow_status: 'SUCCESS', flow_step: 'COMPLETED' },
  failed: { flow_status: 'FAILED', flow_step: 'COMPLETED', error_message: `The account is locked. ${long}` },
  expired: { flow_status: 'EXPIRED', flow_step: 'COMPLETED' },
  canceled: { flow_status: 'CANCELED', flow_step: 'COMPLETED' },
  consent: input,
  over: {},
}

/** The other colour scheme takes as long again. */
const isDeep = process.env.BERTH_DEEP === '1'

test('the hosted page is accessible and fits a phone in every state', async () => {
  const client = await berth.client()
  const { id } = await client.auth.connections.create({ domain: hostName, profile_name: 'eve' })
  const browser = await launchDesktopBrowser()
  try {
    const page = await browser.newPage()
    let told: object = {}
    await page.route(`**/auth/connections/${id}`, (route) => route.fulfill({ json: told }))
    await page.route('**/events', (route) => route.fulfill({ contentType: 'text/event-stream', body: '' }))
    await page.route('**/exchange', (route) => route.fulfill({ json: { jwt: 'token' } }))
    // As in a tab that was reloaded, so that only one state asks for consent.
    await page.addInitScript(
      `if (!location.search.includes('over')) sessionStorage.setItem('berth login ${id}', 'token'); else sessionStorage.clear()`,
    )
    for (const [name, state] of Object.entries(loginStates)) {
      told = { domain: hostName, profile_name: 'eve', ...state }
      await page.setViewportSize(phone)
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.goto(`${berth.url}/login/${id}?state=${name}${name === 'consent' ? '&code=x' : ''}`)
      await page.locator('main[data-state][aria-busy="false"]').waitFor()

      await passesAxe(page, `${name} in dark`)
      await fits(page, name)
      await take(page, `login-${name}-dark`)
      await page.emulateMedia({ colorScheme: 'light' })
      if (isDeep || name === 'refused') await passesAxe(page, `${name} in light`)
      await page.setViewportSize(desktop)
      await fits(page, name)
      await take(page, `login-${name}-light`)
    }
  } finally {
    await browser.close()
  }
})
