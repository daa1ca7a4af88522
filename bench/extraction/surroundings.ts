import type { Random } from './words.ts'

/** The content around the text of a page, in the various markup of sites. */
export interface Surroundings {
  readonly before: string
  readonly after: string
  /** In the middle of the text. */
  readonly between: string
}

const sections = ['World', 'Business', 'Culture', 'Sport', 'Weather', 'Opinion', 'Video', 'Archive', 'Travel', 'Health']
const legal = 'Imprint Privacy policy Terms of use Cookie settings Accessibility Careers Press Contact Licences'
const offers = [
  'Unlock unlimited reading for one euro a month, cancel whenever you like',
  'Join two million subscribers and get the briefing in your inbox each morning',
  'Download our app to receive alerts and listen to podcasts offline',
  'Ten kitchen gadgets our editors bought twice this autumn',
  'This simple trick lowers your electricity bill, providers hate it',
]
const cookieText =
  'We and our 842 partners store and access information on your device, such as cookies, to personalise ads and measure audiences. Accept all, reject all or manage preferences.'

export function surroundings(random: Random, variant: number): Surroundings {
  const links = (count: number) =>
    Array.from({ length: count }, () => `<li><a href="/${random.below(999)}">${random.pick(sections)}</a></li>`).join(
      '',
    )
  const teaser = () =>
    `<div class="teaser"><a href="/x"><img src="/t.jpg" alt=""><h4>${random.pick(offers)}</h4></a><p>${random.pick(offers)}</p></div>`
  const semantic = variant % 2 === 0
  const header = semantic
    ? `<header><a href="/" class="logo">Daily Example</a><nav><ul>${links(8)}</ul></nav><form role="search"><input><button>Search</button></form></header>`
    : `<div id="top" class="site-header"><div class="menu"><ul>${links(8)}</ul></div><div class="login">Log in | Register | Help</div></div>`
  const banner =
    variant % 3 === 0
      ? `<div id="cookie-consent" role="dialog" aria-modal="true"><p>${cookieText}</p><button>Accept all</button></div>`
      : ''
  const crumbs = `<div class="breadcrumbs"><a href="/">Home</a> › <a href="/s">${random.pick(sections)}</a></div>`
  const side = `<h3>Most read</h3><ol>${links(5)}</ol>${teaser()}${teaser()}`
  const aside = semantic ? `<aside>${side}</aside>` : `<div class="sidebar right-col">${side}</div>`
  const footer = semantic
    ? `<footer><p>${legal}</p><ul>${links(6)}</ul><p>© Example Media. All rights reserved.</p></footer>`
    : `<div class="footer" id="footer"><p>${legal}</p><p>© Example Media. All rights reserved.</p></div>`
  const related = `<section class="related-articles"><h2>You may also like</h2>${teaser()}${teaser()}${teaser()}</section>`
  return {
    before: `${banner}${header}${crumbs}${variant % 4 === 1 ? aside : ''}`,
    after: `${related}${variant % 4 === 1 ? '' : aside}${footer}<script>window.dataLayer = [${random.below(9)}]</script>`,
    between: random.pick([
      `<div class="newsletter-signup"><p>${random.pick(offers)}</p><input><button>Subscribe</button></div>`,
      `<div class="ad advertisement">Advertisement ${random.pick(offers)}</div>`,
      `<div class="share-tools">Share on Example Copy link Print Save</div>`,
      `<aside class="promo"><p>${random.pick(offers)}</p></aside>`,
    ]),
  }
}
