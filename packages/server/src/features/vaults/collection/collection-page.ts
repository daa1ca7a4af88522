import { createHash } from 'node:crypto'
import type { CollectionForm, FormFaults, FormField } from './collection-service.ts'

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 0; padding: 1.5rem 1rem; background: Canvas; color: CanvasText }
main { max-width: 26rem; margin: 0 auto }
h1 { font-size: 1.375rem; line-height: 1.3; overflow-wrap: anywhere }
p { white-space: pre-line; overflow-wrap: anywhere }
label { display: block; font-weight: 600; margin-top: 1rem }
input { box-sizing: border-box; width: 100%; min-height: 2.75rem; padding: .5rem .75rem; font: inherit; color: inherit; background: Field; border: 1px solid #767676; border-radius: .375rem }
input[aria-invalid] { border: 2px solid #b00020 }
button { margin-top: 1.5rem; width: 100%; min-height: 2.75rem; font: inherit; font-weight: 600; color: #fff; background: #0b57d0; border: 0; border-radius: .375rem; cursor: pointer }
:focus-visible { outline: 3px solid #0b57d0; outline-offset: 2px }
.hint { margin: .25rem 0 0; font-size: .875rem }
.fault { margin: .25rem 0 0; font-size: .875rem; font-weight: 600 }
.fault::before { content: "\\26A0\\A0" }
`

/** The page runs no scripts, loads nothing, submits only to its own origin, and cannot be embedded. */
export const collectionPageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // The address of the page is a secret.
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
}

const maxTitleLength = 120

/** The form, with the faults of the last submission. Entered values are not written to the page again. */
export function formPage({ description, fields }: CollectionForm, faults: FormFaults = new Map()): string {
  const isTitle = description !== null && description.length <= maxTitleLength && !description.includes('\n')
  const title = isTitle ? description : 'Enter your login'
  const faulty = fields.find(({ name }) => faults.has(name)) ?? fields[0]
  return page(
    faults.size > 0 ? `Error: ${title}` : title,
    `<h1>${escaped(title)}</h1>
${description !== null && !isTitle ? `<p>${escaped(description)}</p>` : ''}
${faults.size > 0 ? `<p role="alert" class="fault">${escaped(faults.get('') ?? 'Nothing was stored. Correct the marked fields and enter the others again.')}</p>` : ''}
<form method="post" autocomplete="off">
${fields.map((field) => fieldHtml(field, faults.get(field.name), field === faulty)).join('\n')}
<button type="submit">Save</button>
</form>
<p class="hint">What you enter is stored encrypted. It can be filled into web pages, and is not shown to the program that asks for it unless a field says so.</p>`,
  )
}

export function storedPage(): string {
  return page('Saved', '<h1>Saved</h1><p role="status">Your values are stored. You can close this page.</p>')
}

export function gonePage(): string {
  return page(
    'This link is not valid',
    '<h1>This link is not valid</h1><p>It was used already, has expired, or was replaced by a newer one. Ask for a new link.</p>',
  )
}

export function tooLongPage(): string {
  return page(
    'Too long',
    '<h1>Too long</h1><p role="alert">What you entered is too long. Nothing was stored. Go back and shorten it.</p>',
  )
}

function fieldHtml(field: FormField, fault: string | undefined, hasFocus: boolean): string {
  const { name, type, required, sensitive, hasValue } = field
  const hints = [
    ...(hasValue ? ['A value is stored. Leave this empty to keep it.'] : []),
    ...(required || hasValue ? [] : ['Optional.']),
    ...(sensitive ? [] : ['Shown to the program that asks for it.']),
  ]
  const described = [...(hints.length > 0 ? [`hint-${name}`] : []), ...(fault === undefined ? [] : [`fault-${name}`])]
  const attributes = [
    `id="field-${name}" name="${name}" type="${type === 'totp' ? 'text' : type}"`,
    'autocomplete="off" autocapitalize="none" spellcheck="false"',
    ...(required && !hasValue ? ['required'] : []),
    ...(described.length > 0 ? [`aria-describedby="${described.join(' ')}"`] : []),
    ...(fault === undefined ? [] : ['aria-invalid="true"']),
    ...(hasFocus ? ['autofocus'] : []),
  ]
  return `<label for="field-${name}">${escaped(field.label ?? name)}</label>
<input ${attributes.join(' ')}>
${hints.length > 0 ? `<p class="hint" id="hint-${name}">${escaped(hints.join(' '))}</p>` : ''}
${fault === undefined ? '' : `<p class="fault" id="fault-${name}">${escaped(fault)}</p>`}`
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body><main>
${content}
</main></body>
</html>
`
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
