import { type Pages, startPages } from '../e2e/testing/pages.ts'

const rows = Array.from({ length: 200 }, (_none, index) => `<tr><td>${index}</td><td>row ${index}</td></tr>`)

/** Serves a page with some text, style and script, like that of a small site. It needs no other host. */
export async function startBenchPages(): Promise<Pages> {
  const pages = await startPages()
  pages.serve(
    '/page',
    `<!doctype html><title>Page</title><style>body { font: 16px sans-serif; background: linear-gradient(#fff, #9cf) }</style>
    <h1>Page</h1><table>${rows.join('')}</table><script src="/script"></script>`,
  )
  pages.serve('/script', (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/javascript' })
    response.end('document.title = String(document.querySelectorAll("td").length)')
  })
  return pages
}

export function browserPage(pages: Pages): string {
  return `${pages.url}/page`
}
