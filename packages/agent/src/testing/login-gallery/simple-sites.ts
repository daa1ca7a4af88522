import { form, page, plain, type Site, welcome } from './site.ts'

const login = (inner = form(), head = {}) => page(`<h1>Log in</h1><!--error-->${inner}`, { title: 'Log in', ...head })
const noLink = page('<h1>Welcome</h1><p>Nothing to see here.</p>')

/** The words of a language: link, fields, button and error. */
const languages: readonly (readonly [
  lang: string,
  link: string,
  user: string,
  password: string,
  submit: string,
  error: string,
])[] = [
  ['de', 'Anmelden', 'Benutzername', 'Passwort', 'Anmelden', 'Das Passwort ist falsch.'],
  ['fr', 'Se connecter', 'Adresse e-mail', 'Mot de passe', 'Connexion', 'Identifiant ou mot de passe incorrect.'],
  ['es', 'Iniciar sesión', 'Correo electrónico', 'Contraseña', 'Entrar', 'La contraseña es incorrecta.'],
  ['pt', 'Entrar', 'Usuário', 'Senha', 'Acessar', 'Senha incorreta.'],
  ['it', 'Accedi', 'Nome utente', 'Parola d’accesso (password)', 'Accedi', 'Credenziali non valide.'],
  ['nl', 'Inloggen', 'Gebruikersnaam', 'Wachtwoord', 'Inloggen', 'Wachtwoord onjuist.'],
  ['pl', 'Zaloguj się', 'Adres e-mail', 'Hasło', 'Zaloguj się', 'Nieprawidłowe hasło.'],
  ['ru', 'Войти', 'Логин', 'Пароль', 'Войти', 'Неверный логин или пароль.'],
  ['tr', 'Giriş yap', 'Kullanıcı adı', 'Şifre', 'Giriş yap', 'Şifre hatalı.'],
  ['ja', 'ログイン', 'メールアドレス', 'パスワード', 'ログイン', 'パスワードが正しくありません。'],
  ['zh', '登录', '用户名', '密码', '登录', '用户名或密码错误'],
  ['ko', '로그인', '아이디', '비밀번호', '로그인', '비밀번호가 올바르지 않습니다.'],
  ['ar', 'تسجيل الدخول', 'البريد الإلكتروني', 'كلمة المرور', 'دخول', 'كلمة المرور غير صحيحة'],
  ['he', 'התחברות', 'דואר אלקטרוני', 'סיסמה', 'כניסה', 'הסיסמה שגויה'],
]

/** Each gets a wrong password first, so that the error message has to be understood too. */
export const languageSites: readonly Site[] = languages.map(([lang, link, user, password, submit, error]) => {
  const options = { lang, dir: lang === 'ar' || lang === 'he' ? 'rtl' : 'ltr' }
  return {
    name: `lang-${lang}`,
    pages: plain(
      (_visit, message) =>
        page(
          `<h1>${link}</h1>${message && `<div class="meldung">${message}</div>`}${form({ user, password, submit })}`,
          options,
        ),
      { home: page(`<nav><a href="/login">${link}</a></nav><h1>Beispiel</h1>`, options), error },
    ),
    passwords: ['Wrong-Donkey-8?', 'Correct-Horse-9!'],
    toldBefore: 'credentials_invalid',
    ends: 'logged_in',
  }
})

const script = (code: string) => `<script>${code}</script>`
const send = `fetch('/login', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(values) }).then((answer) => { if (answer.url.endsWith('/account')) location = '/account'; else failed() })`

const react = `<div id="root"></div>${script(`
  const state = { user: '', password: '' }
  const root = document.getElementById('root')
  root.innerHTML = '<form><input name="user" placeholder="Email"><input name="password" type="password" placeholder="Password"><button>Sign in</button><p class="error" hidden></p></form>'
  const native = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
  for (const input of root.querySelectorAll('input')) {
    let tracked = ''
    Object.defineProperty(input, 'value', { configurable: true, get() { return native.get.call(this) }, set(value) { tracked = String(value); native.set.call(this, value) } })
    input.addEventListener('input', () => {
      const now = native.get.call(input)
      if (now === tracked) return
      tracked = now
      state[input.name] = now
    })
  }
  setInterval(() => { for (const input of root.querySelectorAll('input')) if (native.get.call(input) !== state[input.name]) input.value = state[input.name] }, 20)
  root.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault()
    const values = state
    const failed = () => { root.querySelector('.error').hidden = false; root.querySelector('.error').textContent = 'Invalid email or password' }
    ${send}
  })`)}`

const vue = `<div class="card"><h2>Sign in to your account</h2><div><span>Email</span><input id="mail" autocomplete="username"></div><div><span>Password</span><input id="word" type="password"></div><button id="go" disabled>Continue</button></div>${script(`
  const values = { user: '', password: '' }
  const bind = (id, name) => {
    const input = document.getElementById(id)
    input.addEventListener('input', (event) => { if (event.isTrusted) values[name] = input.value })
    input.addEventListener('keyup', () => { go.disabled = !(values.user && values.password) })
  }
  bind('mail', 'user'); bind('word', 'password')
  const failed = () => alert('Wrong password')
  go.addEventListener('click', () => { ${send} })`)}`

const component = (mode: string) =>
  `<login-box></login-box>${script(`
  customElements.define('text-field', class extends HTMLElement {
    connectedCallback() {
      const root = this.attachShadow({ mode: '${mode}' })
      root.innerHTML = '<label>' + this.getAttribute('label') + '<input type="' + this.getAttribute('type') + '"></label>'
      this.read = () => root.querySelector('input').value
    }
  })
  customElements.define('login-box', class extends HTMLElement {
    connectedCallback() {
      const root = this.attachShadow({ mode: '${mode}' })
      root.innerHTML = '<h2>Sign in</h2><text-field label="Email" type="email"></text-field><text-field label="Password" type="password"></text-field><div role="button" tabindex="0">Sign in</div>'
      const [user, password] = root.querySelectorAll('text-field')
      const failed = () => {}
      root.querySelector('[role=button]').addEventListener('click', () => {
        const values = { user: user.read(), password: password.read() }
        ${send}
      })
    }
  })`)}`

const slow = `<div id="app">Loading…</div>${script(`
  setTimeout(() => {
    app.innerHTML = '<form><input name="user" placeholder="Email"><input name="password" type="password" placeholder="Password"><button>Log in</button></form>'
    app.firstChild.addEventListener('submit', (event) => {
      event.preventDefault()
      const values = Object.fromEntries(new FormData(app.firstChild))
      const failed = () => {}
      app.innerHTML = 'Signing you in…'
      setTimeout(() => { ${send} }, 900)
    })
  }, 1_200)`)}`

const cookieBanner = `<div style="position:fixed;inset:0;background:#000a;z-index:9"><div role="dialog" aria-label="Cookies" style="background:#fff;margin:20vh auto;width:400px"><p>Wir verwenden Cookies und ähnliche Technologien, um unsere Seite zu verbessern und Werbung zu messen.</p><div><button onclick="location='/login?cookies=all'">Alle akzeptieren</button><button onclick="this.closest('[style]').parentNode.remove()">Nur notwendige</button></div></div></div>`

/** Many kinds of forms, each on one page. */
export const simpleSites: readonly Site[] = [
  { name: 'single-form', pages: plain(login()), ends: 'logged_in' },
  { name: 'well-known-path', pages: plain(login(), { home: noLink }), ends: 'logged_in' },
  {
    name: 'modal',
    pages: plain(login(), {
      home: page(
        `<header><button id="open">Sign in</button></header><h1>Shop</h1><footer><form action="/subscribe"><input type="email" name="mail" placeholder="Your email"><button>Subscribe</button></form></footer><dialog id="box">${form()}</dialog>${script("document.getElementById('open').onclick = () => box.showModal()")}`,
      ),
    }),
    ends: 'logged_in',
  },
  { name: 'react', pages: plain(login(react)), ends: 'logged_in' },
  {
    name: 'vue',
    pages: plain(login(vue)),
    passwords: ['Wrong-Donkey-8?', 'Correct-Horse-9!'],
    toldBefore: 'credentials_invalid',
    says: /Wrong/,
    ends: 'logged_in',
  },
  { name: 'open-shadow', pages: plain(login(component('open'))), ends: 'logged_in' },
  { name: 'closed-shadow', pages: plain(login(component('closed'))), ends: 'logged_in' },
  {
    name: 'frame',
    pages: {
      ...plain(page('<h1>Members</h1><iframe src="/inner" width="400" height="300"></iframe>')),
      '/inner': () => page(form().replace('<form', '<form target="_top"')),
      '/login': (visit) =>
        visit.method === 'GET'
          ? page('<h1>Members</h1><iframe src="/inner" width="400" height="300"></iframe>')
          : welcome(),
    },
    ends: 'logged_in',
  },
  {
    name: 'foreign-frame',
    allowed: ['widget.test'],
    pages: {
      ...plain(page('<h1>Members</h1><iframe src="http://widget.test/inner" width="400" height="300"></iframe>')),
      'widget.test/inner': () =>
        page(form().replace('action="/login"', 'action="http://foreign-frame.test/login" target="_top"')),
    },
    ends: 'logged_in',
  },
  { name: 'slow', pages: plain(login(slow)), ends: 'logged_in' },
  {
    name: 'cookie-banner',
    pages: plain(
      login(cookieBanner + form({ user: 'E-Mail', password: 'Passwort', submit: 'Anmelden' }), { lang: 'de' }),
    ),
    ends: 'logged_in',
  },
  {
    name: 'crowded',
    pages: plain(
      page(
        `<h1>My account</h1><div><section><h2>Register</h2><form method="post" action="/register"><label>Email address <input type="email" name="email"></label><label>Password <input type="password" name="password" autocomplete="new-password"></label><label>Confirm password <input type="password" name="again"></label><button>Register</button></form></section><section><h2>Login</h2><form method="post" action="/login"><input name="website" style="position:absolute;left:-9999px" tabindex="-1"><label>Username or email <input name="user"></label><label>Password <input type="password" name="password"></label><label><input type="checkbox" name="stay" value="yes"> Remember me</label><button>Log in</button><a href="/lost">Lost your password?</a></form></section></div><footer><form action="/newsletter"><input type="email" name="e" placeholder="Newsletter: your email"><button>Subscribe</button></form><a href="https://facebook.com/shop">Follow us on Facebook</a></footer>`,
      ),
      {
        after: ({ sent }) =>
          sent.get('stay') === 'yes' && !sent.get('website') ? welcome() : { status: 400, html: 'trap' },
      },
    ),
    ends: 'logged_in',
  },
  {
    name: 'terms-box',
    pages: plain(
      login(
        form().replace(
          '<button',
          '<label><input type="checkbox" name="terms" required> I agree to the terms of service</label><button',
        ),
      ),
      { after: ({ sent }) => (sent.has('terms') ? welcome() : { status: 400, html: 'no' }) },
    ),
    ends: 'logged_in',
  },
  {
    name: 'no-button',
    pages: plain(
      login(
        form()
          .replace(/<button.*<\/button>/, '')
          .replace('<form', '<form onkeydown="if (event.key === \'Enter\') this.submit()"'),
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'tables',
    pages: plain(
      login(
        '<form method="post" action="/login"><table><tr><td>User ID:</td><td><input name="a1"></td></tr><tr><td>Password:</td><td><input name="a2" type="password"></td></tr><tr><td></td><td><input type="image" alt="Log on" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" width="60" height="20"></td></tr></table></form>',
      ),
    ),
    ends: 'logged_in',
  },
  {
    name: 'tenant',
    pages: plain(
      login(
        form().replace(
          '<button',
          '<label>Domain <select name="domain" required><option value="">Choose</option><option value="EU">Europe</option></select></label><button',
        ),
      ),
      { after: ({ sent }) => (sent.get('domain') === 'EU' ? welcome() : { status: 400, html: 'no' }) },
    ),
    values: { other: 'EU' },
    ends: 'logged_in',
  },
]
