import { ProtocolError } from './protocol-error.ts'

const concepts: Readonly<Record<string, string>> = {
  browsers:
    'A browser session is a real Chromium in a machine of its own. manage_browsers creates one and gives its live view. ' +
    'A session ends after its timeout without activity, or when it is deleted. Profiles keep logins between sessions, ' +
    'pools keep sessions ready, proxies route their traffic. computer_action moves the mouse and types, ' +
    'execute_playwright_code runs Playwright next to the browser, exec_command runs programs in its machine.',
  apps:
    'An app is code in TypeScript, JavaScript or Python that runs next to the browsers. A deployment builds a version of ' +
    'it, and each of its actions can be invoked with a JSON payload. An invocation has a result, logs, and the sessions ' +
    'that it has created. berth deploy sends an app, manage_apps invokes it.',
  overview:
    'berth gives agents isolated, real Chromium sessions. Create a session, do the task in it, delete it. For recurring ' +
    'tasks, keep a profile, a pool, or an app. get_connection_context returns your organization and project, ' +
    'search_docs finds the documentation.',
}

export const conceptNames = Object.keys(concepts)

export const prompts = [
  {
    name: 'kernel-concepts',
    description: 'Explains the concepts.',
    arguments: [{ name: 'concept', description: conceptNames.join(', '), required: true }],
  },
  {
    name: 'debug-browser-session',
    description: 'Finds out why a session does not work as expected.',
    arguments: [
      { name: 'session_id', description: 'Id or name of the session.', required: true },
      { name: 'issue_description', description: 'The problem.', required: false },
    ],
  },
] as const

/** The messages of a prompt. Throws a ProtocolError that names a missing argument. */
export function promptMessages(name: string, args: Readonly<Record<string, string>>) {
  if (name === 'kernel-concepts') {
    const text = Object.hasOwn(concepts, args.concept ?? '') ? concepts[args.concept ?? ''] : undefined
    if (!text) throw new ProtocolError('invalidParams', `concept must be one of ${conceptNames.join(', ')}`)
    return [{ role: 'assistant' as const, content: { type: 'text' as const, text } }]
  }
  if (name !== 'debug-browser-session') throw new ProtocolError('invalidParams', `there is no prompt ${name}`)
  if (!args.session_id) throw new ProtocolError('invalidParams', 'session_id is required')
  const issue = args.issue_description ? ` The problem: ${args.issue_description}` : ''
  const text =
    `Find out what is wrong with the browser session ${args.session_id}.${issue}\n` +
    '1. manage_browsers get: does it exist, and with which settings?\n' +
    '2. computer_action with a screenshot: what is on the screen?\n' +
    '3. manage_browsers get_telemetry: console errors, failed requests, crashes.\n' +
    '4. execute_playwright_code: the URL, the title and the state of the page.\n' +
    'Then explain the cause and how to fix it.'
  return [{ role: 'user' as const, content: { type: 'text' as const, text } }]
}
