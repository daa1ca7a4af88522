import './docs.css'

/** The parts of Scalar that the page uses. It loads Scalar as published. */
interface Library {
  createApiReference(
    element: Element,
    configuration: object,
  ): { readonly updateConfiguration: (configuration: object) => void }
}

type Theme = 'light' | 'dark'

const root = document.documentElement
const button = document.querySelector<HTMLButtonElement>('#theme')
const reference = document.querySelector<HTMLElement>('#reference')
const followers: ((theme: Theme) => void)[] = []

function themeNow(): Theme {
  return root.dataset.theme === 'dark' ? 'dark' : 'light'
}

function showTheme(): void {
  if (button) button.textContent = themeNow() === 'dark' ? '☀' : '☾'
  for (const follow of followers) follow(themeNow())
}

button?.addEventListener('click', () => {
  root.dataset.theme = themeNow() === 'dark' ? 'light' : 'dark'
  localStorage.setItem('berth.theme', root.dataset.theme)
})
new MutationObserver(showTheme).observe(root, { attributeFilter: ['data-theme'] })
showTheme()

/** Languages whose samples do not use an official SDK. */
const hiddenLanguages = [
  ...['c', 'clojure', 'csharp', 'dart', 'fsharp', 'go', 'http', 'java', 'js', 'kotlin', 'node', 'objc', 'ocaml'],
  ...['php', 'powershell', 'python', 'r', 'ruby', 'rust', 'swift'],
]

async function showReference(element: HTMLElement): Promise<void> {
  const { library = '', document: url } = element.dataset
  const { createApiReference } = (await import(library)) as Library
  const configurationFor = (theme: Theme) => ({
    url,
    // Requests can be sent to this server only: the page's policy forbids all others.
    servers: [{ url: location.origin }],
    proxyUrl: '',
    // The key stays in the memory of the page: every script of this origin could read stored values.
    persistAuth: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    withDefaultFonts: false,
    hideClientButton: true,
    hideDarkModeToggle: true,
    forceDarkModeState: theme,
    showDeveloperTools: 'never',
    documentDownloadType: 'json',
    defaultOpenAllTags: false,
    hiddenClients: {
      ...Object.fromEntries(hiddenLanguages.map((language) => [language, true])),
      shell: ['wget', 'httpie'],
    },
  })
  const shown = createApiReference(element, configurationFor(themeNow()))
  followers.push((theme) => {
    shown.updateConfiguration(configurationFor(theme))
    document.body.classList.toggle('dark-mode', theme === 'dark')
    document.body.classList.toggle('light-mode', theme === 'light')
  })
}

if (reference) void showReference(reference)
