/** The decisions of a model, in order. Kinds are ARIA roles. */
export type Step =
  | readonly ['click', kind: string, name: string]
  | readonly ['type', kind: string, name: string, text: string]
  | readonly ['select', name: string, option: string]
  | readonly ['press', key: string]
  | readonly ['wait', text: string]
  | readonly ['read', text: string]

export interface Task {
  readonly name: string
  readonly body: string
  readonly steps: readonly Step[]
  /** Set by tasks that only read. */
  readonly readsOnly?: true
}

/** Called by pages when the task is solved. */
const script = '<script>const done = () => { document.title = "solved" }</script>'
const links = Array.from(
  { length: 40 },
  (_none, index) => `<li><a href="/topic/${index}">Topic number ${index}</a></li>`,
)
const paragraphs = Array.from(
  { length: 20 },
  (_none, index) =>
    `<h3>Article ${index}</h3><p>Nobody needs the text of article ${index} for the task, but every page has some of it.</p>`,
)

/** A typical page: the relevant part is surrounded by other content. */
export function pageOf({ name, body }: Task): string {
  return `<!doctype html><title>${name}</title>${script}<nav><ul>${links.join('')}</ul></nav><main>${body}</main>
    <aside>${paragraphs.join('')}</aside><footer><a href="/imprint">Imprint</a></footer>`
}

const form = (fields: string, test: string) =>
  `<form onsubmit="event.preventDefault(); if (${test}) done()">${fields}<button>Send</button></form>`
const field = (label: string, name: string, type = 'text') =>
  `<label>${label} <input name="${name}" type="${type}"></label>`

const searches = ['bread', 'two words', 'größe', '日本語', 'a "quoted" word'].map(
  (text): Task => ({
    name: `search for ${text}`,
    body: form(
      '<input type="search" name="q" aria-label="Search">',
      `this.q.value === ${JSON.stringify(text).replaceAll('"', '&quot;')}`,
    ),
    steps: [
      ['type', 'searchbox', 'Search', text],
      ['click', 'button', 'Send'],
    ],
  }),
)

const logins = ['ada', 'grace', 'edsger'].map(
  (user): Task => ({
    name: `log in as ${user}`,
    body: form(
      `${field('User', 'user')}${field('Password', 'password', 'password')}<label><input type="checkbox" name="keep"> Stay signed in</label>`,
      `this.user.value === '${user}' && this.password.value === 'secret' && this.keep.checked`,
    ),
    steps: [
      ['type', 'textbox', 'User', user],
      ['type', 'textbox', 'Password', 'secret'],
      ['click', 'checkbox', 'Stay signed in'],
      ['click', 'button', 'Send'],
    ],
  }),
)

const orders = (['Small', 'Medium', 'Large'] as const).map(
  (size): Task => ({
    name: `order ${size}`,
    body: form(
      `${field('Name', 'name')}<label>Size <select name="size"><option>Small</option><option>Medium</option><option>Large</option></select></label>
      <label><input type="radio" name="pay" value="card"> Card</label><label><input type="radio" name="pay" value="cash"> Cash</label>`,
      `this.name.value === 'Ada' && this.size.value === '${size}' && this.pay.value === 'cash'`,
    ),
    steps: [
      ['type', 'textbox', 'Name', 'Ada'],
      ['select', 'Size', size],
      ['click', 'radio', 'Cash'],
      ['click', 'button', 'Send'],
    ],
  }),
)

const counts = [1, 2, 3, 4].map(
  (times): Task => ({
    name: `add ${times} to the basket`,
    body: `<p>Items: <output id="count">0</output></p><button onclick="count.value = Number(count.value) + 1">Add</button>
      <button onclick="if (count.value === '${times}') done()">Buy</button>`,
    steps: [...Array.from({ length: times }, () => ['click', 'button', 'Add'] as const), ['click', 'button', 'Buy']],
  }),
)

const steps = [2, 3, 4].map(
  (pages): Task => ({
    name: `a wizard of ${pages} steps`,
    body: `<div id="wizard"></div><script>
      let step = 0
      const show = () => { step += 1; wizard.innerHTML = step > ${pages} ? '<button onclick="done()">Finish</button>' : '<label>Answer ' + step + ' <input></label><button onclick="if (this.previousElementSibling.firstElementChild.value) show()">Next ' + step + '</button>' }
      show()</script>`,
    steps: [
      ...Array.from({ length: pages }, (_none, index): readonly Step[] => [
        ['type', 'textbox', `Answer ${index + 1}`, 'yes'],
        ['click', 'button', `Next ${index + 1}`],
      ]).flat(),
      ['click', 'button', 'Finish'],
    ],
  }),
)

const banners = ['Accept', 'Reject all', 'Only necessary'].map(
  (choice): Task => ({
    name: `a cookie banner: ${choice}`,
    body: `<button onclick="done()">Continue</button><div id="banner" role="dialog" aria-label="Cookies" style="position: fixed; inset: 0; background: #fff">
      <p>We value your privacy.</p><button onclick="banner.remove()">${choice}</button></div>`,
    steps: [
      ['click', 'button', choice],
      ['click', 'button', 'Continue'],
    ],
  }),
)

const late = [200, 500, 900].map(
  (milliseconds): Task => ({
    name: `a result after ${milliseconds} ms`,
    body: `<button onclick="setTimeout(() => { result.innerHTML = '<p>Result is ready</p><button onclick=done()>Open</button>' }, ${milliseconds})">Start</button><div id="result"></div>`,
    steps: [
      ['click', 'button', 'Start'],
      ['wait', 'Result is ready'],
      ['click', 'button', 'Open'],
    ],
  }),
)

const reads = ['12 €', '7.50 €', '199 €'].map(
  (price): Task => ({
    name: `read the price ${price}`,
    body: `<table><tr><th>Item</th><th>Price</th></tr><tr><td>Bread</td><td>${price}</td></tr></table>`,
    steps: [['read', price]],
    readsOnly: true,
  }),
)

const menus = ['Settings', 'Log out', 'Help'].map(
  (item): Task => ({
    name: `the menu item ${item}`,
    body: `<button aria-haspopup="menu" aria-expanded="false" onclick="menu.hidden = !menu.hidden; this.setAttribute('aria-expanded', String(!menu.hidden))">Menu</button>
      <div id="menu" role="menu" hidden>${['Settings', 'Log out', 'Help'].map((each) => `<div role="menuitem" tabindex="0" onclick="${each === item ? 'done()' : ''}">${each}</div>`).join('')}</div>`,
    steps: [
      ['click', 'button', 'Menu'],
      ['click', 'menuitem', item],
    ],
  }),
)

export const tasks: readonly Task[] = [
  ...searches,
  ...logins,
  ...orders,
  ...counts,
  ...steps,
  ...banners,
  ...late,
  ...reads,
  ...menus,
]
