import { Viewer } from './viewer.ts'

const viewer = new Viewer({
  screen: element('screen'),
  field: element('keyboard') as HTMLTextAreaElement,
  status: element('status'),
  isReadOnly: document.body.dataset.readOnly === 'true',
})
element('show-keyboard').addEventListener('click', () => viewer.focus())
viewer.start()

function element(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no element ${id}`)
  return found
}
