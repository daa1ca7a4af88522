import { parseHTML } from 'linkedom'
import type { PageDocument, PageElement } from './dom.ts'
import type { ExtractedText } from './extracted.ts'
import { findMainContent } from './main-content.ts'
import { toMarkdown } from './to-markdown.ts'
import { toText } from './to-text.ts'

/** A page with more text is readable without its scripts. */
const littleText = 250

/** Extracts the main text of a page. */
export function extractHtml(html: string, url: string): ExtractedText {
  const document = parsed(html)
  const base = baseOf(document, url)
  const scriptCount = [...document.querySelectorAll('script')].length
  const isChallenge = asksForProof(document)
  const title = titleOf(document)
  const content = findMainContent(document)
  absolute(content, base)
  const body = toText(content)
  const text = withTitle(title, body, (heading) => heading)
  const markdown = withTitle(title, firstHeading(toMarkdown(content), title), (heading) => `# ${heading}`)
  return { markdown, text, needsScript: body.length < littleText && scriptCount > 0, isChallenge }
}

/** linkedom makes the first element the root, which a fragment or a leading comment breaks. */
function parsed(html: string): PageDocument {
  const whole = /<html[\s>]/i.test(html) ? html : `<!doctype html><html><head></head><body>${html}</body></html>`
  return parseHTML(whole).document as unknown as PageDocument
}

function baseOf(document: PageDocument, url: string): string {
  const href = document.querySelector('base[href]')?.getAttribute('href')
  return (href ? URL.parse(href, url)?.href : undefined) ?? url
}

function titleOf(document: PageDocument): string {
  const heading = document.querySelector('h1')?.textContent?.trim()
  const named = document.querySelector('meta[property="og:title"]')?.getAttribute('content')?.trim()
  return (heading || named || document.querySelector('title')?.textContent?.trim() || '').replaceAll(/\s+/g, ' ')
}

/** Adds the title if the text does not contain it. */
function withTitle(title: string, text: string, write: (title: string) => string): string {
  const begin = text.slice(0, 2 * title.length + 200).replaceAll(/\s+/g, ' ')
  return title === '' || text === '' || begin.includes(title) ? text : `${write(title)}\n\n${text}`
}

/** Readability turns the title of a page into a second-level heading. */
function firstHeading(markdown: string, title: string): string {
  const [line = '', ...rest] = markdown.split('\n')
  return line.replace(/^#+ /, '') === title ? [`# ${title}`, ...rest].join('\n') : markdown
}

/** Makes the addresses of links and images absolute. */
function absolute(content: PageElement, base: string): void {
  for (const [selector, name] of [
    ['a[href]', 'href'],
    ['img[src]', 'src'],
  ] as const) {
    for (const element of content.querySelectorAll(selector)) {
      const to = URL.parse(element.getAttribute(name) ?? '', base)
      if (to && /^(https?|mailto):$/.test(to.protocol)) element.setAttribute(name, to.href)
      else element.removeAttribute(name)
    }
  }
}

const challengeMarks = [
  ...['#challenge-form', '#challenge-running', '#cf-challenge-running', '.cf-turnstile', '#px-captcha'],
  ...['script[src*="/cdn-cgi/challenge-platform/"]', 'iframe[src*="captcha-delivery.com"]', '#sec-if-cpt-container'],
  ...['.g-recaptcha', '.h-captcha', 'script[src*="/_Incapsula_Resource"]'],
].join(', ')
const challengeWords =
  /just a moment|attention required|verify (that )?you are (a )?human|are you a robot|access denied|checking your browser|enable javascript and cookies to continue/i
const challengeLength = 2_000

/** Many pages contain a form with a captcha. A page that only consists of one is short. */
function asksForProof(document: PageDocument): boolean {
  const text = document.body?.textContent?.replaceAll(/\s+/g, ' ').trim() ?? ''
  if (text.length > challengeLength) return false
  const title = document.querySelector('title')?.textContent ?? ''
  return document.querySelector(challengeMarks) !== null || challengeWords.test(title)
}
