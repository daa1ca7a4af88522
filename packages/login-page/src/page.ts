import { button, make } from './elements.ts'
import { LoginClient, type SubmitBody } from './login-client.ts'
import { loginForm } from './login-form.ts'
import { LoginIsOver, type LoginState } from './login-state.ts'

/*
 * The page where a person finishes a login. It takes the code from its address, exchanges it, removes it from the
 * address, and shows the fields of the login. The token is stored for this tab, so that the page can be reloaded.
 */

const query = new URLSearchParams(location.search)
const connectionId = location.pathname.split('/').filter(Boolean).at(-1) ?? ''
const kept = `berth login ${connectionId}`
const main = document.querySelector('main') as HTMLElement
const client = new LoginClient(
  new URL(`../auth/connections/${connectionId}`, location.href).href,
  sessionStorage.getItem(kept) ?? undefined,
)

/** The question that was answered last, until the login asks another one. */
let answered: string | undefined
/** The current content, so that input is not overwritten. */
let shown = ''
let isBrowserShown = false

async function start(): Promise<void> {
  const code = query.get('code')
  try {
    if (code !== null) {
      query.delete('code')
      const rest = query.size > 0 ? `?${query}` : ''
      history.replaceState(null, '', `${location.pathname}${rest}`)
      // The page was reloaded with its first address.
      sessionStorage.setItem(kept, await client.exchange(code))
      const first = await client.read()
      if (first.flow_status === 'IN_PROGRESS') await consent(first)
    } else if (sessionStorage.getItem(kept) === null) {
      throw new LoginIsOver('This link does not lead to a login. Ask for a new one.')
    }
    await client.follow(show)
  } catch (error) {
    sessionStorage.removeItem(kept)
    const isKnown = error instanceof LoginIsOver
    const reason = isKnown
      ? 'It was already used, or its login has ended.'
      : 'The page could not be loaded. Check your connection and reload it.'
    draw('over', isKnown ? 'This link is not valid any more' : 'No connection', [
      make('p', {}, reason),
      make('p', {}, `${isKnown ? 'Ask' : 'If that does not help, ask'} whoever sent you here for a new link.`),
    ])
  }
}

/** The person first confirms what the login is for. */
function consent({ domain, profile_name }: LoginState): Promise<void> {
  return new Promise((resolve) => {
    draw('consent', `Log in to ${domain}`, [
      make(
        'p',
        {},
        `A browser that runs elsewhere logs in to ${domain} for you. It stays logged in, as the profile ${profile_name}.`,
      ),
      make(
        'p',
        { class: 'hint' },
        'What you enter here is typed into the site. It is kept encrypted, and shown to nobody.',
      ),
      button('Continue', resolve, { class: 'primary' }),
    ])
  })
}

function show(state: LoginState): void {
  if (state.flow_status !== 'IN_PROGRESS') {
    end(state)
    return
  }
  const { domain, flow_step: step, interaction_id: question = null } = state
  const isAnswered = answered !== undefined && answered === question
  if (step === 'AWAITING_INPUT' && !isAnswered) {
    draw(`input ${question}`, `Log in to ${domain}`, [
      alertOf(state),
      loginForm(state, submitOf(state)),
      browserOf(state),
    ])
  } else if (step === 'AWAITING_EXTERNAL_ACTION') {
    isBrowserShown ||= state.external_action_message?.includes('live view') ?? false
    draw(`external ${question} ${state.external_action_message}`, 'Confirm that it is you', [
      alertOf(state),
      make('p', { class: 'lead', dir: 'auto' }, state.external_action_message ?? ''),
      make('p', { class: 'waiting', role: 'status' }, 'Waiting for you. This page continues by itself.'),
      question !== null && !isAnswered ? loginForm(state, submitOf(state)) : undefined,
      browserOf(state),
    ])
  } else {
    const text = step === 'DISCOVERING' ? `Looking for the login page of ${domain} …` : `Logging in to ${domain} …`
    draw(`working ${step}`, `Log in to ${domain}`, [make('p', { class: 'waiting', role: 'status' }, text)])
  }
}

function submitOf(state: LoginState): (body: SubmitBody) => void {
  return (body) => {
    answered = state.interaction_id ?? undefined
    show({ ...state, flow_step: 'SUBMITTING' })
    client.submit(body).catch((error: Error) => {
      answered = undefined
      shown = ''
      show({ ...state, website_error: error.message })
    })
  }
}

function alertOf({ website_error: text }: LoginState): HTMLElement | undefined {
  return text ? make('p', { class: 'alert', role: 'alert', dir: 'auto' }, text) : undefined
}

/** A view of the browser, for steps that only a person can do there. */
function browserOf({ live_view_url: url }: LoginState): HTMLElement | undefined {
  if (!url) return undefined
  const details = make('details', { open: isBrowserShown }, make('summary', {}, 'Show the browser'))
  const fill = () => {
    isBrowserShown = details.open
    if (details.open && !details.querySelector('iframe')) {
      details.append(
        make('iframe', { src: url, title: 'The browser that logs in', allow: 'clipboard-read; clipboard-write' }),
      )
    }
  }
  details.addEventListener('toggle', fill)
  if (isBrowserShown) fill()
  return details
}

function end(state: LoginState): void {
  sessionStorage.removeItem(kept)
  const { domain, flow_status: status } = state
  if (status === 'SUCCESS') {
    draw('success', `You are logged in to ${domain}`, [make('p', {}, 'You can close this page.')], 'done')
    leaveFor('success_url', { profile_name: state.profile_name, domain })
    return
  }
  const message = state.error_message ?? state.website_error ?? endings[status ?? ''] ?? 'The login has failed.'
  draw(
    `ended ${status}`,
    status === 'FAILED' ? `The login to ${domain} has failed` : `The login to ${domain} is over`,
    [make('p', {}, message), make('p', {}, 'To try again, ask for a new link.')],
    'failed',
  )
  leaveFor('error_url', { ...(state.error_code && { code: state.error_code }), message })
}

const endings: Readonly<Record<string, string>> = {
  EXPIRED: 'It has taken too long.',
  CANCELED: 'It was canceled.',
}

/** Links may use any scheme, such as that of an app, except those that would run in this page. */
const unsafeSchemes = ['javascript:', 'data:', 'blob:', 'vbscript:', 'about:', 'file:']

function leaveFor(parameter: string, facts: Readonly<Record<string, string>>): void {
  const target = URL.parse(query.get(parameter) ?? '')
  if (!target || unsafeSchemes.includes(target.protocol)) return
  for (const [name, value] of Object.entries(facts)) target.searchParams.set(name, value)
  location.replace(target.href)
}

function draw(name: string, title: string, content: readonly (HTMLElement | undefined)[], mark = ''): void {
  if (name === shown) return
  const isFirst = shown === ''
  shown = name
  const heading = make('h1', { tabindex: '-1' }, title)
  main.dataset.state = mark || name.split(' ', 1)[0] || ''
  main.replaceChildren(heading, ...content.filter((part) => part !== undefined))
  main.setAttribute('aria-busy', 'false')
  document.title = title
  const field = main.querySelector<HTMLElement>('input')
  if (field) field.focus()
  // Announces the change to screen readers.
  else if (!isFirst) heading.focus()
}

void start()
