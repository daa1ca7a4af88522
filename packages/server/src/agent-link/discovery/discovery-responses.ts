import { devToolsUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { z } from 'zod'
import { sessionRoot } from '../../features/sessions/records/session-urls.ts'
import { frontendUrl } from './devtools-frontend.ts'

/*
 * Rebuilds the responses of Chromium's HTTP discovery from known fields, because a compromised agent could send
 * anything. Documents that do not match are rejected.
 */

/** The path of a DevTools URL inside the machine. */
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

/** The response to a command for a target. */
const Confirmation = z
  .string()
  .max(200)
  .regex(/^[\w .:]*$/)

/** The public address of the session. */
export interface PublicAddress {
  readonly base: string
  readonly id: SessionId
  readonly token: string
}

type Answer = Readonly<Record<string, unknown>> | readonly unknown[] | string

/**
 * Returns the response for a path below `/json`, with URLs that lead back through berth. Throws when the text does not
 * match.
 */
export function rebuildDiscoveryResponse(path: string, text: string, address: PublicAddress): Answer {
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
