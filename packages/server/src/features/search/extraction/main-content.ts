import { Readability } from '@mozilla/readability'
import type { PageDocument, PageElement } from './dom.ts'

/** Elements that never contain text of a page. */
const unreadable =
  'script, style, noscript, template, svg, canvas, iframe, object, embed, link, meta, dialog, input, select, button, textarea'
/** Elements around the text of a page, by element, role and usual names. */
const surroundings = [
  ...['nav', 'body > footer', 'body > header', '[role="navigation"]', '[role="banner"]', '[role="contentinfo"]'],
  ...['[role="search"]', '[role="dialog"]', '[role="alertdialog"]', '[role="complementary"]', 'aside'],
  ...['[aria-modal="true"]', '[hidden]', '[aria-hidden="true"]', 'footer:not(article footer, main footer)'],
].join(', ')
const surroundingNames =
  /(^|[\s_-])(cookies?|consent|gdpr|newsletter|subscribe|breadcrumbs?|sidebar|side-bar|sharing|share|social|advert(isement)?s?|ads?|promo|sponsored|related|recommend(ed|ations)?|popup|modal|pagination|pager|skip-link|site-(header|footer|nav)|masthead|menu|toolbar|toc|back-to-top|paywall-offer|most-read|trending|editsection|mw-editsection|navbox|catlinks|printfooter)([\s_-]|$)/i
const mainMarks = [
  'main',
  '[role="main"]',
  '[itemprop="articleBody"]',
  '#main-content',
  '#mw-content-text',
  '#content',
  '#main',
]
/**
 * Readability is reliable for articles. If it returns less than this share of the page's main element, it has dropped
 * text.
 */
const shareOfMain = 0.75
const shareOfBody = 0.35
const minMainLength = 120

/** Finds the element with the main text of a page. Modifies the document. */
export function findMainContent(document: PageDocument): PageElement {
  const article = readable(document)
  const body = document.body ?? document.documentElement
  prune(body)
  const main = mainPart(document)
  const articleLength = article ? lengthOf(article) : 0
  if (main && articleLength < shareOfMain * lengthOf(main)) return main
  // An article with more text than the main element includes its surroundings.
  if (main && articleLength > 1.25 * lengthOf(main) && lengthOf(main) > 500) return main
  if (article && articleLength >= shareOfBody * lengthOf(body)) return article
  return lengthOf(body) > articleLength || !article ? body : article
}

function readable(document: PageDocument): PageElement | undefined {
  const copy = document.cloneNode(true)
  const found = new Readability<PageElement>(copy as never, {
    serializer: (node) => node as unknown as PageElement,
    keepClasses: true,
  }).parse()
  if (!found?.content) return undefined
  prune(found.content)
  return found.content
}

function mainPart(document: PageDocument): PageElement | undefined {
  for (const mark of mainMarks) {
    const [first, ...others] = [...document.querySelectorAll(mark)].filter((one) => lengthOf(one) >= minMainLength)
    if (!first) continue
    if (others.length === 0) return first
    // Several articles with one parent are entries of the same page.
    return others.every((other) => other.parentElement === first.parentElement) ? (first.parentElement ?? first) : first
  }
  const articles = [...document.querySelectorAll('article')].filter((one) => lengthOf(one) >= minMainLength)
  return articles.length === 1 ? articles[0] : undefined
}

function prune(root: PageElement): void {
  for (const element of root.querySelectorAll(`${unreadable}, ${surroundings}`)) element.remove()
  for (const element of root.querySelectorAll('[class], [id]')) {
    const names = `${element.getAttribute('class') ?? ''} ${element.getAttribute('id') ?? ''}`
    // A page may use such a name for its whole content.
    if (surroundingNames.test(names) && !holdsMost(element, root)) element.remove()
  }
}

function holdsMost(element: PageElement, root: PageElement): boolean {
  return lengthOf(element) > 0.5 * lengthOf(root)
}

function lengthOf(element: PageElement): number {
  return (element.textContent ?? '').replaceAll(/\s+/g, ' ').trim().length
}
