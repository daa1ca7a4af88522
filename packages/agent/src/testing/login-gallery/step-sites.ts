import { code, codeStep, form, page, password, plain, type Reply, redirect, type Site, user, welcome } from './site.ts'

const login = page(`<h1>Sign in</h1><!--error-->${form()}`)
/** A login whose password leads to a further page. */
const then = (path: string) => plain(login, { after: () => redirect(path) })

const identifierFirst: Site['pages'] = {
  ...plain(login),
  '/login': ({ method, sent }) => {
    if (method === 'GET')
      return page(
        '<h1>Sign in</h1><p>Use your account</p><form method="post" action="/login"><input type="email" name="identifier" aria-label="Email or phone"><button>Next</button></form>',
      )
    if (sent.get('identifier') !== user)
      return page(
        '<h1>Sign in</h1><p>Couldn’t find your account</p><form method="post"><input type="email" name="identifier" aria-label="Email or phone" aria-invalid="true"><button>Next</button></form>',
      )
    return page(
      `<h1>Welcome</h1><p>${user}</p><form method="post" action="/password"><input type="hidden" name="user" value="${user}"><input type="password" name="password" aria-label="Enter your password"><button>Next</button></form>`,
    )
  },
  '/password': ({ sent }) =>
    sent.get('password') === password
      ? welcome()
      : page(
          '<h1>Welcome</h1><p class="x1">Wrong password. Try again.</p><form method="post"><input type="password" name="password"><button>Next</button></form>',
        ),
}

const inOneDocument =
  page(`<div id="app"><h1>Log in</h1><div id="one"><input id="user" placeholder="Email"><button id="next">Continue</button></div><div id="two" hidden><input id="pass" type="password" placeholder="Password"><button id="go">Log in</button></div></div><script>
  next.onclick = () => setTimeout(() => { one.hidden = true; two.hidden = false }, 250)
  go.onclick = () => fetch('/login', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams({ user: user.value, password: pass.value }) }).then((answer) => { location = answer.url })
</script>`)

const boxes = `<h1>Enter the 6-digit code</h1><p>Open your authenticator app and enter the code.</p><form method="post" action="/code" id="f">${'<input class="b" maxlength="1" inputmode="numeric" style="width:40px" aria-label="Digit">'.repeat(6)}<input type="hidden" name="code" id="all"></form><script>
  const inputs = [...document.querySelectorAll('.b')]
  inputs.forEach((input, index) => input.addEventListener('input', () => {
    if (input.value && inputs[index + 1]) inputs[index + 1].focus()
    if (inputs.every((each) => each.value)) { all.value = inputs.map((each) => each.value).join(''); f.submit() }
  }))
</script>`

const waiting = (message: string): Site['pages'] => ({
  '/wait': () =>
    page(
      `<h1>Check your phone</h1><p>${message}</p><a href="/other">Try another way</a><script>setInterval(async () => { if ((await (await fetch('/state')).text()).includes('yes')) location = '/done' }, 150)</script>`,
    ),
  '/state': ({ memory }) => ({ json: { approved: memory.get('approved') === true ? 'yes' : 'no' } }),
  '/done': ({ memory }): Reply => (memory.get('approved') === true ? welcome() : redirect('/login')),
})
const approve = (memory: Map<string, unknown>) => void memory.set('approved', true)

const picker = (body: string): Site['pages'] => ({
  '/pick': () => page(`<h1>Verify your identity</h1><p>Choose how you want to get a code</p>${body}`),
})

/** Logins with several pages. */
export const stepSites: readonly Site[] = [
  { name: 'identifier-first', pages: identifierFirst, ends: 'logged_in' },
  {
    name: 'one-document',
    pages: {
      ...plain(login),
      '/login': ({ method, sent }) =>
        method === 'GET' ? inOneDocument : sent.get('password') === password ? welcome() : 'no',
    },
    ends: 'logged_in',
  },
  {
    name: 'totp',
    pages: {
      ...then('/code'),
      ...codeStep(
        'Enter the code from your authenticator app.',
        '<input name="code" aria-label="Code" inputmode="numeric" maxlength="6">',
      ),
    },
    ends: 'logged_in',
  },
  {
    name: 'sms',
    pages: {
      ...then('/code'),
      ...codeStep(
        'We sent a text message to ••• ••• 42.',
        '<label>Code <input name="c" autocomplete="one-time-code"></label>',
      ),
    },
    ends: 'logged_in',
  },
  {
    name: 'mail-code',
    pages: {
      ...then('/code'),
      ...codeStep('We sent a code to a•••@example.com.', '<input name="otp" placeholder="Verification code">'),
    },
    ends: 'logged_in',
  },
  { name: 'boxes', pages: { ...then('/boxes'), ...codeStep('', ''), '/boxes': () => page(boxes) }, ends: 'logged_in' },
  {
    name: 'push',
    pages: { ...then('/wait'), ...waiting('We sent a notification to your Pixel. Tap Yes to sign in.') },
    approve,
    ends: 'logged_in',
  },
  {
    name: 'magic-link',
    pages: {
      ...plain(login),
      ...waiting(''),
      '/login': ({ method }) =>
        method === 'GET'
          ? page(
              '<h1>Log in</h1><form method="post"><label>Email <input name="email" type="email"></label><button>Email me a login link</button></form>',
            )
          : redirect('/sent'),
      '/sent': () =>
        page(
          `<h1>Check your inbox</h1><p>We sent a login link to ${user}. Click the link to continue.</p><script>setInterval(async () => { if ((await (await fetch('/state')).text()).includes('yes')) location = '/done' }, 150)</script>`,
        ),
    },
    approve,
    ends: 'logged_in',
  },
  {
    name: 'mfa-buttons',
    pages: {
      ...then('/pick'),
      ...picker(
        '<ul><li><button onclick="location=\'/code\'">Text message to ••• 42</button></li><li><button>Call ••• 42</button></li><li><button>Authenticator app</button></li><li><button>Try another way</button></li></ul>',
      ),
      ...codeStep('Enter the code that we sent to ••• 42.', '<input name="code" aria-label="Enter code">'),
    },
    choices: ['mfa:sms'],
    ends: 'logged_in',
  },
  {
    name: 'mfa-radios',
    pages: {
      ...then('/pick'),
      ...picker(
        '<form method="post" action="/picked"><label><input type="radio" name="way" value="sms"> Send a text message (SMS)</label><label><input type="radio" name="way" value="app"> Use an authenticator app</label><button>Continue</button></form>',
      ),
      '/picked': ({ sent }) => (sent.get('way') === 'app' ? redirect('/code') : redirect('/pick')),
      ...codeStep(
        'Open the app on your phone to see your code.',
        '<input name="code" aria-label="Authenticator code">',
      ),
    },
    choices: ['mfa:totp'],
    ends: 'logged_in',
  },
  {
    name: 'passkey-first',
    pages: {
      ...plain(login),
      '/login': () =>
        page(
          '<h1>Sign in with your passkey</h1><p>Your device will ask for your fingerprint, face, or screen lock.</p><button>Continue</button><button onclick="location=\'/form\'">Use your password instead</button>',
        ),
      '/form': () => login.replace('action="/login"', 'action="/form2"'),
      '/form2': ({ sent }) => (sent.get('password') === password ? welcome() : login),
    },
    ends: 'logged_in',
  },
  {
    name: 'passkey-only',
    pages: {
      ...plain(login),
      '/login': () =>
        page(
          '<h1>Sign in with a passkey</h1><p>Insert your security key or use your fingerprint.</p><button>Use passkey</button>',
        ),
    },
    ends: 'error',
    problem: 'unsupported_auth_method',
  },
  {
    name: 'terms',
    pages: {
      ...then('/terms'),
      '/terms': ({ method }) =>
        method === 'GET'
          ? page(
              '<h1>We updated our Terms of Service</h1><p>Please read and accept the new terms to continue. See also our cookie policy.</p><form method="post"><button>I agree</button></form><a href="/logout">Decline and sign out</a>',
            )
          : welcome(),
    },
    choices: ['terms'],
    ends: 'logged_in',
  },
  {
    name: 'stay-in',
    pages: {
      ...then('/stay'),
      '/stay': ({ method, sent }) =>
        method === 'GET'
          ? page(
              '<h1>Stay signed in?</h1><p>Do this to reduce the number of times you are asked to sign in.</p><form method="post"><button name="a" value="no">No</button><button name="a" value="yes">Yes</button></form>',
            )
          : sent.get('a') === 'yes'
            ? redirect('/phone')
            : redirect('/login'),
      '/phone': ({ method }) =>
        method === 'GET'
          ? page(
              '<h1>Add a phone number</h1><p>Keep your account safe</p><form method="post"><label>Phone number <input type="tel" name="phone"></label><button>Add</button></form><form method="post"><button>Not now</button></form>',
            )
          : welcome(),
    },
    ends: 'logged_in',
  },
  {
    name: 'workspace',
    pages: {
      ...then('/spaces'),
      '/spaces': () =>
        page(
          '<h1>Choose a workspace</h1><ul><li><a href="/enter?w=1">Acme Corp</a></li><li><a href="/enter?w=2">Example Ltd</a></li></ul><a href="/help">Help</a>',
        ),
      '/enter': ({ query }) => (query.get('w') === '2' ? welcome() : 'no'),
    },
    choices: ['Example Ltd'],
    ends: 'logged_in',
  },
  {
    name: 'with-email',
    pages: {
      ...plain(login),
      '/login': ({ method, sent }) =>
        method === 'GET'
          ? page(
              `<h1>Log in to Example</h1><button>Continue with Google</button><button>Continue with Apple</button><button id="m">Continue with email</button><div id="f" hidden>${form()}</div><script>m.onclick = () => { f.hidden = false; m.remove() }</script>`,
            )
          : sent.get('password') === password
            ? welcome()
            : login,
    },
    choices: ['method:email'],
    ends: 'logged_in',
  },
  {
    name: 'wrong-password',
    pages: plain(login),
    passwords: ['Wrong-Donkey-8?', password],
    toldBefore: 'credentials_invalid',
    ends: 'logged_in',
  },
  {
    name: 'wrong-silently',
    pages: plain(page(`<h1>Sign in</h1>${form()}`)),
    passwords: ['Wrong-Donkey-8?', password],
    toldBefore: 'credentials_invalid',
    ends: 'logged_in',
  },
  {
    name: 'wrong-code',
    pages: {
      ...then('/code'),
      ...codeStep('Enter the code from your authenticator app.', '<input name="code" aria-label="Code">'),
    },
    values: { totp: '000000', 'totp again': code },
    toldBefore: 'code_rejected',
    ends: 'logged_in',
  },
  {
    name: 'locked',
    pages: plain(login, { error: 'Your account has been locked. Contact support to unlock it.' }),
    passwords: ['Wrong-Donkey-8?'],
    ends: 'blocked',
    problem: 'account_locked',
    says: /locked/,
  },
  {
    name: 'rate-limit',
    pages: {
      ...plain(login),
      '/login': ({ method }) =>
        method === 'GET'
          ? login
          : { status: 429, html: page('<h1>Too many attempts</h1><p>Please try again later.</p>') },
    },
    ends: 'blocked',
    problem: 'rate_limited',
    says: /Too many/,
  },
  {
    name: 'captcha-picture',
    pages: plain(
      page(
        `<h1>Sign in</h1>${form().replace('<button', '<img src="/captcha.png" alt="captcha" width="120" height="40"><label>Type the characters you see in the picture <input name="answer"></label><button')}`,
      ),
    ),
    ends: 'captcha',
    problem: 'captcha_blocked',
  },
  {
    name: 'captcha-frame',
    pages: {
      ...plain(
        page(
          `<h1>Sign in</h1>${form().replace('<button', '<div class="g-recaptcha" data-sitekey="k"><iframe title="reCAPTCHA" src="/recaptcha/api2/anchor" width="304" height="78"></iframe><textarea name="g-recaptcha-response" hidden></textarea></div><button')}`,
        ),
      ),
      '/recaptcha/api2/anchor': () => page('I am not a robot'),
    },
    ends: 'captcha',
    problem: 'captcha_blocked',
  },
  {
    name: 'bot-wall',
    pages: {
      '/': () => ({
        status: 403,
        html: page('<h1>Checking your browser before accessing the site</h1>', { title: 'Just a moment...' }),
        headers: { 'cf-mitigated': 'challenge' },
      }),
    },
    ends: 'blocked',
    problem: 'bot_detected',
  },
  { name: 'already-in', pages: plain(login), isLoggedInBefore: true, ends: 'logged_in' },
  {
    name: 'no-login',
    pages: { '/': () => page('<h1>Just a page</h1><p>There is nothing to log in to.</p>') },
    ends: 'not_found',
    problem: 'login_form_not_found',
  },
  {
    name: 'quiet-account',
    pages: {
      ...plain(login, { after: () => welcome('/app') }),
      '/app': ({ isLoggedIn }) =>
        isLoggedIn ? page('<h1>Projects</h1><button>New project</button>') : redirect('/login'),
    },
    ends: 'logged_in',
  },
]
