import { plainText } from '../words/word-list.ts'

/** Identity providers: how labels, class names and URLs refer to them. */
const providers: readonly (readonly [provider: string, names: string, marks: RegExp])[] = [
  ['google', 'google|gmail', /google|gsi-|accounts\.google/],
  ['apple', 'apple|apple id|apple-id', /apple/],
  ['microsoft', 'microsoft|office 365|azure|azure ad|entra|outlook|live id', /microsoft|azure|entra|msal|\bms-/],
  ['facebook', 'facebook|meta', /facebook|\bfb\b|fb-/],
  ['github', 'github', /github/],
  ['gitlab', 'gitlab', /gitlab/],
  ['bitbucket', 'bitbucket', /bitbucket/],
  ['atlassian', 'atlassian', /atlassian/],
  ['linkedin', 'linkedin', /linkedin/],
  ['twitter', 'twitter|with x|mit x|avec x|con x|com x|met x|через x', /twitter|x-twitter/],
  ['amazon', 'amazon', /amazon|\blwa\b/],
  ['yahoo', 'yahoo', /yahoo/],
  ['slack', 'slack', /slack/],
  ['discord', 'discord', /discord/],
  ['twitch', 'twitch', /twitch/],
  ['steam', 'steam', /steam/],
  ['spotify', 'spotify', /spotify/],
  ['paypal', 'paypal', /paypal/],
  ['salesforce', 'salesforce', /salesforce/],
  ['okta', 'okta', /okta/],
  ['auth0', 'auth0', /auth0/],
  ['onelogin', 'onelogin', /onelogin/],
  ['keycloak', 'keycloak', /keycloak/],
  ['vk', 'vk|vkontakte|вконтакте|vk id', /\bvk\b|vkontakte/],
  ['yandex', 'yandex|яндекс', /yandex/],
  ['wechat', 'wechat|微信', /wechat|weixin/],
  ['weibo', 'weibo|微博', /weibo/],
  ['qq', 'qq', /\bqq\b/],
  ['alipay', 'alipay|支付宝', /alipay/],
  ['line', 'line', /line-login|\bline-btn/],
  ['kakao', 'kakao|카카오', /kakao/],
  ['naver', 'naver|네이버', /naver/],
  ['bankid', 'bankid', /bankid/],
  ['franceconnect', 'franceconnect', /franceconnect/],
  ['digid', 'digid', /digid/],
  ['spid', 'spid', /\bspid\b/],
  [
    'sso',
    'sso|single sign-on|single sign on|saml|company account|work account|enterprise|corporate|organization account|school account|institution|university|your organization|firmenkonto|unternehmenskonto|authentification unique|compte professionnel|inicio de sesion unico|cuenta de empresa|login unico|conta corporativa|accesso aziendale|bedrijfsaccount|logowanie jednokrotne|единый вход|корпоратив|kurumsal|シングルサインオン|单点登录|企业登录|통합 로그인|الدخول الموحد|כניסה אחודה',
    /\bsso\b|saml|single-sign/,
  ],
]

const known = providers.map(([provider, names, marks]) => ({
  provider,
  name: new RegExp(
    `(?<![\\p{L}\\p{N}])(?:${names
      .split('|')
      .map((each) => plainText(each).replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('|')})(?![\\p{L}\\p{N}])`,
    'u',
  ),
  marks,
}))

/** The provider that a label names. */
export function providerInLabel(label: string): string | undefined {
  const plain = plainText(label)
  return known.find(({ name }) => name.test(plain))?.provider
}

/** The provider that class names, images or a URL name. */
export function providerInMarks(marks: string): string | undefined {
  const plain = marks.toLowerCase()
  return known.find(({ marks: pattern }) => pattern.test(plain))?.provider
}
