import { themeScript } from '../../host/bundles/page-theme.ts'
import type { Guide } from './guides.ts'

export interface PageFiles {
  readonly script: string
  readonly style: string
}

const words = {
  reference: 'API reference',
  guides: 'Guides',
  dashboard: 'Dashboard',
  theme: 'Switch between light and dark',
  pages: 'Pages',
  skip: 'Skip to the content',
  menu: 'All guides',
  intro: 'How to use and operate berth, one subject each.',
  needsScript: 'The reference needs JavaScript. The document for programs is /openapi.json.',
}

interface Reference {
  /** The module that renders the reference. */
  readonly library: string
  readonly document: string
}

export function referencePage(files: PageFiles, { library, document }: Reference): string {
  return pageWith(
    files,
    words.reference,
    `<div id="reference" data-library="${library}" data-document="${document}"></div>
<noscript>${words.needsScript}</noscript>`,
  )
}

export function guideIndexPage(files: PageFiles, guides: readonly Guide[]): string {
  return pageWith(
    files,
    words.guides,
    `<main class="guide" id="content"><h1>${words.guides}</h1><p>${words.intro}</p>${listOf(guides)}</main>`,
  )
}

export function guidePage(files: PageFiles, guides: readonly Guide[], guide: Guide): string {
  return pageWith(
    files,
    guide.title,
    `<div class="guide-frame">
<nav class="guide-list" aria-label="${words.guides}">${listOf(guides, guide)}</nav>
<main class="guide" id="content">
<details class="guide-menu"><summary>${words.menu}</summary>${listOf(guides, guide)}</details>
${guide.html}</main>
</div>`,
  )
}

function listOf(guides: readonly Guide[], current?: Guide): string {
  const entries = guides.map((guide) => {
    const mark = guide === current ? ' aria-current="page"' : ''
    return `<li><a href="/docs/guides/${guide.name}"${mark}>${escaped(guide.title)}</a></li>`
  })
  return `<ul>${entries.join('')}</ul>`
}

function pageWith({ script, style }: PageFiles, title: string, content: string): string {
  const isReference = title === words.reference
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · berth</title>
<link rel="icon" href="data:,">
<script>${themeScript}</script>
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body class="docs">
<header class="docs-top">
${isReference ? '' : `<a class="skip" href="#content">${words.skip}</a>`}
<a class="docs-brand" href="/docs">berth</a>
<nav class="docs-links" aria-label="${words.pages}">
<a href="/docs"${isReference ? ' aria-current="page"' : ''}>${words.reference}</a>
<a href="/docs/guides"${isReference ? '' : ' aria-current="page"'}>${words.guides}</a>
<a href="/dashboard">${words.dashboard}</a>
</nav>
<button type="button" id="theme" aria-label="${words.theme}"></button>
</header>
${content}
</body>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
