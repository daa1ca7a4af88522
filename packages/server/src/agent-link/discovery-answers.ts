import { devToolsUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { z } from 'zod'
import { sessionRoot } from '../features/sessions/records/session-urls.ts'
import { frontendUrl } from './devtools-frontend.ts'

/*
 * What Chromium's HTTP discovery answers, rebuilt from the fields that it is known to have: an agent may have been taken
 * over, and its answer could be anything. A document that does not fit is no answer.
 */

/** Of a DevTools address inside the machine, the path. */
const DevToolsPath = z
  .string()
  .transform((text) => URL.parse(text)?.pathname ?? '')
  .refine((path) => path.startsWith(devToolsUpgrade.path))

const Version = z.object({
  Browser: z.string(),
  'Protocol-Version': z.string().optional(),
  'User-Agent': z.string().optional(),
  'V8-Version': z.string().optional(),
  'WebKit-Version': z.string().optional(),
  webSocketDebuggerUrl: DevToolsPath,
})

const Target = z.object({
  description: z.string().optional(),
  devtoolsFrontendUrl: z.string().optional(),
  faviconUrl: z.string().optional(),
  id: z.string(),
  parentId: z.string().optional(),
  thumbnailUrl: z.string().optional(),
  title: z.string().optional(),
  type: z.string(),
  url: z.string().optional(),
  webSocketDebuggerUrl: DevToolsPath.optional(),
})

const Protocol = z.object({
  version: z.object({ major: z.string(), minor: z.string() }),
  domains: z.array(z.looseObject({ domain: z.string() })),
})

/** Of what an order to a target is answered with. */
const Confirmation = z
  .string()
  .max(200)
  .regex(/^[\w .:]*$/)

/** Where the session is reached from outside. */
export interface PublicAddress {
  readonly base: string
  readonly id: SessionId
  readonly token: string
}

type Answer = Readonly<Record<string, unknown>> | readonly unknown[] | string

/** What each path below `/json` answers, with addresses that lead back through berth; throws when the text is no such answer. */
export function rebuildDiscoveryAnswer(path: string, text: string, address: PublicAddress): Answer {
  const [, command = ''] = path.split('/')
  switch (command) {
    case 'version': {
      const { webSocketDebuggerUrl, ...version } = Version.parse(JSON.parse(text))
      return { ...version, webSocketDebuggerUrl: websocketUrl(address, webSocketDebuggerUrl) }
    }
    case '':
    case 'list':
      return z
        .array(Target)
        .parse(JSON.parse(text))
        .map((target) => publicTarget(target, address))
    case 'new':
      return publicTarget(Target.parse(JSON.parse(text)), address)
    case 'protocol':
      return Protocol.parse(JSON.parse(text))
    default:
      return Confirmation.parse(text)
  }
}

function publicTarget(
  { webSocketDebuggerUrl, devtoolsFrontendUrl, ...target }: z.infer<typeof Target>,
  to: PublicAddress,
) {
  if (webSocketDebuggerUrl === undefined) return target
  const websocket = websocketUrl(to, webSocketDebuggerUrl)
  const frontend = frontendUrl(`${to.base}${sessionRoot}/${to.id}`, to.token, websocket)
  return {
    ...target,
    ...(devtoolsFrontendUrl !== undefined && { devtoolsFrontendUrl: frontend }),
    webSocketDebuggerUrl: websocket,
  }
}

function websocketUrl({ base, id, token }: PublicAddress, path: string): string {
  return `${base.replace(/^http/, 'ws')}${sessionRoot}/${id}${path}?jwt=${token}`
}
