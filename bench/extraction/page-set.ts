import { type Surroundings, surroundings } from './surroundings.ts'
import { type Language, paragraph, Random, sentence, title } from './words.ts'

export interface ExtractionPage {
  /** `news-3`. */
  readonly name: string
  readonly shape: string
  readonly html: string
  /** The main text, as a person would mark it. */
  readonly expected: string
}

interface Written {
  readonly language?: Language
  readonly title: string
  /** In the place of the main text. */
  readonly main: string
  readonly expected: readonly string[]
  /** The whole page, if it is not the usual one. */
  readonly page?: (parts: { readonly head: string; readonly around: Surroundings }) => string
}

type Write = (random: Random, variant: number, around: Surroundings) => Written

const variants = 6
const asHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const many = <Item>(count: number, make: (index: number) => Item) =>
  Array.from({ length: count }, (_, index) => make(index))

const news: Write = (random, variant, { between }) => {
  const heading = title(random)
  const lead = sentence(random)
  const texts = many(random.between(6, 11), () => paragraph(random))
  const wrapped = texts.map((text, index) => `<p>${text}</p>${index === 2 ? between : ''}`).join('\n')
  const byline = `<p class="byline">By A. Writer</p><time>2 March 2026</time>`
  const body = `<h1>${heading}</h1>${byline}<p class="lead">${lead}</p><figure><img src="a.jpg" alt=""></figure>${wrapped}`
  const mains = [
    `<main><article>${body}</article></main>`,
    `<div id="content"><div class="story-body">${body}</div></div>`,
    `<div class="wrap"><div class="col-8"><div>${body}</div></div></div>`,
  ]
  return { title: heading, main: mains[variant % 3] as string, expected: [heading, lead, ...texts] }
}

const blog: Write = (random, variant, { between }) => {
  const heading = title(random)
  const texts = many(5, () => paragraph(random))
  const points = many(4, () => sentence(random))
  const quote = sentence(random)
  const comments = many(
    4,
    () =>
      `<div class="comment"><b>reader${random.below(99)}</b><p>First! Great post, thanks for sharing, greetings from my blog.</p></div>`,
  )
  const body = `<h1>${heading}</h1>${texts
    .slice(0, 3)
    .map((text) => `<p>${text}</p>`)
    .join(
      '',
    )}<ul>${points.map((text) => `<li>${text}</li>`).join('')}</ul>${between}<blockquote>${quote}</blockquote>${texts
    .slice(3)
    .map((text) => `<p>${text}</p>`)
    .join('')}`
  const main =
    variant % 2 ? `<article class="post"><div class="entry">${body}</div></article>` : `<div class="post">${body}</div>`
  return {
    title: heading,
    main: `${main}<section id="comments" class="comments">${comments.join('')}</section>`,
    expected: [heading, ...texts, ...points, quote],
  }
}

const docs: Write = (random, variant) => {
  const heading = `Configure ${random.pick(['routing', 'storage', 'logging', 'caching'])}`
  const parts = many(4, (index) => ({
    heading: `Step ${index + 1}: ${title(random)}`,
    text: paragraph(random, 'en', 2),
    code: `const option${index} = load({ path: '/etc/${random.below(99)}', retries: ${random.below(9)} })`,
    note: sentence(random),
  }))
  const body = parts
    .map(
      ({ heading: own, text, code, note }) =>
        `<h2>${own}</h2><p>${text}</p><pre><code class="language-ts">${asHtml(code)}</code></pre><div class="admonition note"><p>${note}</p></div>`,
    )
    .join('')
  const tree = `<nav class="docs-sidebar"><ul>${many(25, (index) => `<li><a href="#${index}">Chapter ${index} reference</a></li>`).join('')}</ul></nav>`
  const toc = `<div class="toc"><ul>${parts.map(({ heading: own }) => `<li><a href="#">${own}</a></li>`).join('')}</ul></div>`
  const pager = '<div class="pagination"><a href="/p">Previous page</a><a href="/n">Next page</a></div>'
  const inner = `<h1>${heading}</h1>${body}${pager}`
  return {
    title: heading,
    main: `<div class="layout">${tree}${variant % 2 ? `<main>${inner}</main>` : `<div role="main" class="doc">${inner}</div>`}${toc}</div>`,
    expected: [heading, ...parts.flatMap(({ heading: own, text, code, note }) => [own, text, code, note])],
  }
}

const forum: Write = (random, variant, { between }) => {
  const heading = `${title(random)}?`
  const posts = many(random.between(5, 9), () => ({
    author: `member${random.below(500)}`,
    text: paragraph(random, 'en', random.between(1, 3)),
  }))
  const post = ({ author, text }: (typeof posts)[number], index: number) => {
    const info = `<span class="user">${author}</span>`
    if (variant % 3 === 0)
      return `<article class="topic-post">${info}<div class="cooked"><p>${text}</p></div></article>`
    if (variant % 3 === 1)
      return `<div class="post" id="p${index}"><div class="author">${info}</div><div class="message">${text}</div></div>`
    return `<table class="post"><tr><td>${info}</td><td><div class="postbody">${text}</div></td></tr></table>`
  }
  const list = posts.map((one, index) => post(one, index) + (index === 1 ? between : '')).join('\n')
  const main =
    variant % 2 ? `<main><h1>${heading}</h1>${list}</main>` : `<div id="thread"><h1>${heading}</h1>${list}</div>`
  return { title: heading, main, expected: [heading, ...posts.flatMap(({ author, text }) => [author, text])] }
}

const shop: Write = (random, variant) => {
  const name = `${title(random)} ${random.between(100, 900)}`
  const price = `€ ${random.between(10, 900)}.99`
  const text = many(2, () => paragraph(random, 'en', 3))
  const points = many(5, () => sentence(random))
  const specs = many(
    8,
    (index) => [`Property ${index}`, `${random.between(1, 90)} ${random.pick(['cm', 'kg', 'W', 'mm'])}`] as const,
  )
  const table =
    variant % 2
      ? `<table>${specs.map(([key, value]) => `<tr><th>${key}</th><td>${value}</td></tr>`).join('')}</table>`
      : `<dl>${specs.map(([key, value]) => `<dt>${key}</dt><dd>${value}</dd>`).join('')}</dl>`
  const others = `<div class="recommendations"><h2>Customers also bought</h2>${many(6, () => '<div class="card"><a href="/p">Stainless kettle</a> € 39.00 Add to basket</div>').join('')}</div>`
  const body = `<h1>${name}</h1><p class="price">${price}</p><select><option>1</option><option>2</option></select><button>Add to basket</button><ul class="features">${points.map((one) => `<li>${one}</li>`).join('')}</ul><div class="description">${text.map((one) => `<p>${one}</p>`).join('')}</div>${table}`
  return {
    title: name,
    main:
      variant % 3
        ? `<main><div class="product">${body}</div>${others}</main>`
        : `<div id="main"><div class="product">${body}</div></div>${others}`,
    expected: [name, price, ...points, ...text, ...specs.flat()],
  }
}

const wiki: Write = (random) => {
  const heading = title(random)
  const lead = paragraph(random)
  const parts = many(4, () => ({ heading: title(random), texts: many(2, () => paragraph(random, 'en', 3)) }))
  const facts = many(5, (index) => [`Fact ${index}`, title(random)] as const)
  const infobox = `<table class="infobox">${facts.map(([key, value]) => `<tr><th>${key}</th><td>${value}</td></tr>`).join('')}</table>`
  const sectionsHtml = parts
    .map(
      ({ heading: own, texts }) =>
        `<h2>${own}<span class="mw-editsection">[edit]</span></h2>${texts.map((text) => `<p>${text}<sup></sup></p>`).join('')}`,
    )
    .join('')
  const navbox = `<div class="navbox"><table><tr><td>${many(30, (index) => `<a href="/w${index}">Listing ${index}</a>`).join(' · ')}</td></tr></table></div>`
  const toc = `<div id="toc" class="toc"><h2>Contents</h2><ul>${parts.map(({ heading: own }) => `<li><a href="#">${own}</a></li>`).join('')}</ul></div>`
  return {
    title: heading,
    main: `<div id="content"><h1 id="firstHeading">${heading}</h1><div id="mw-content-text"><div class="mw-parser-output">${infobox}<p>${lead}</p>${toc}${sectionsHtml}${navbox}</div></div><div id="catlinks" class="catlinks">Categories: Bridges Harbours</div></div>`,
    expected: [heading, ...facts.flat(), lead, ...parts.flatMap(({ heading: own, texts }) => [own, ...texts])],
  }
}

const tables: Write = (random, variant) => {
  const heading = `Statistics: ${title(random)}`
  const intro = paragraph(random, 'en', 2)
  const columns = ['Year', 'Region', 'Vessels', 'Tonnage', 'Change']
  const rows = many(random.between(15, 35), (index) => [
    `${1990 + index}`,
    random.pick(['north', 'south', 'coast', 'inland']),
    `${random.below(90_000)}`,
    `${random.below(9_000)}.${random.below(9)}`,
    `${random.below(30)} %`,
  ])
  const source = sentence(random)
  const cells = (row: readonly string[], tag: string) =>
    `<tr>${row.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  const table = `<table class="data"><caption>${heading}</caption><thead>${cells(columns, 'th')}</thead><tbody>${rows.map((row) => cells(row, 'td')).join('')}</tbody></table>`
  const body = `<h1>${heading}</h1><p>${intro}</p>${table}<p class="source">${source}</p>`
  return {
    title: heading,
    main:
      variant % 3 === 0
        ? `<main>${body}</main>`
        : variant % 3 === 1
          ? `<div class="page-content">${body}</div>`
          : `<div id="main-content">${body}</div>`,
    expected: [heading, intro, heading, ...columns, ...rows.flat(), source],
  }
}

const code: Write = (random, variant, { between }) => {
  const heading = `How to ${title(random).toLowerCase()}`
  const parts = many(4, (index) => ({
    text: paragraph(random, 'en', 2),
    code: many(
      random.between(6, 14),
      (line) =>
        `${'  '.repeat(line % 3)}value_${index}_${line} = compute(${random.below(99)}, "<tag>") # ${random.below(99)}`,
    ).join('\n'),
  }))
  const block = (text: string) =>
    variant % 3 === 0
      ? `<pre><code class="language-python">${asHtml(text)}</code></pre>`
      : variant % 3 === 1
        ? `<div class="highlight"><pre>${text
            .split('\n')
            .map((line) => `<span class="k">${asHtml(line)}</span>`)
            .join('\n')}</pre></div>`
        : `<pre class="brush: python">${asHtml(text)}</pre>`
  const body = parts
    .map(({ text, code: own }, index) => `<p>${text}</p>${block(own)}${index === 1 ? between : ''}`)
    .join('')
  return {
    title: heading,
    main:
      variant % 2
        ? `<article><h1>${heading}</h1>${body}</article>`
        : `<div class="content"><h1>${heading}</h1>${body}</div>`,
    expected: [heading, ...parts.flatMap(({ text, code: own }) => [text, own])],
  }
}

const rightToLeft: Write = (random, variant, { between }) => {
  const language = (['ar', 'he', 'fa'] as const)[variant % 3] as Language
  const heading = title(random, language)
  const texts = many(random.between(5, 8), () => paragraph(random, language))
  const list = many(3, () => sentence(random, language))
  const body = `<h1>${heading}</h1>${texts.map((text, index) => `<p>${text}</p>${index === 1 ? between : ''}`).join('')}<ul>${list.map((text) => `<li>${text}</li>`).join('')}</ul>`
  return {
    language,
    title: heading,
    main:
      variant % 2 ? `<main><article dir="rtl">${body}</article></main>` : `<div class="text" dir="rtl">${body}</div>`,
    expected: [heading, ...texts, ...list],
  }
}

/** Contains only scripts until they have run. */
const script: Write = (random, variant, around) => {
  const language = variant % 2 ? 'de' : 'en'
  const heading = title(random, language)
  const texts = many(6, () => paragraph(random, language))
  const body = `<h1>${heading}</h1>${texts.map((text) => `<p>${text}</p>`).join('')}`
  const data = JSON.stringify(
    `${around.before}<main>${body}</main>${around.after.replace(/<script>.*<\/script>/, '')}`,
  ).replaceAll('</', '<\\/')
  const render = [
    `document.getElementById('app').innerHTML = html`,
    `setTimeout(() => { document.getElementById('app').innerHTML = html }, 150)`,
    `requestAnimationFrame(() => Promise.resolve(html).then((text) => { document.getElementById('app').innerHTML = text }))`,
  ][variant % 3]
  return {
    language,
    title: heading,
    main: '',
    expected: [heading, ...texts],
    page: ({ head }) =>
      `${head}<body><div id="app">Loading</div><noscript>Please enable JavaScript.</noscript><script>const html = ${data}; ${render}</script></body></html>`,
  }
}

/** CSS tools give elements generated class names. */
function withoutNames(html: string): string {
  let count = 0
  return html.replaceAll(
    / (?:class|id)=(?:"(?!app")[^"]*"|\\"[^"]*\\")/g,
    () => ` class=css-${(count++ * 7919).toString(36)}`,
  )
}

const shapes: Readonly<Record<string, Write>> = {
  ...{ news, blog, docs, forum, shop, wiki, tables, code },
  ...{ 'right-to-left': rightToLeft, script },
}

/** Sixty pages: six of each shape, the same in every run. */
export function extractionPages(): readonly ExtractionPage[] {
  return Object.entries(shapes).flatMap(([shape, write], shapeIndex) =>
    many(variants, (variant) => {
      const random = new Random(shapeIndex * 1000 + variant * 17 + 1)
      const around = surroundings(random, variant)
      const written = write(random, variant, around)
      const head = `<!doctype html><html lang="${written.language ?? 'en'}"><head><meta charset="utf-8"><title>${written.title} | Example</title><style>p { margin: 1em }</style></head>`
      const html =
        written.page?.({ head, around }) ?? `${head}<body>${around.before}${written.main}${around.after}</body></html>`
      const named = variant === variants - 1 ? withoutNames(html) : html
      return { name: `${shape}-${variant + 1}`, shape, html: named, expected: written.expected.join('\n') }
    }),
  )
}
