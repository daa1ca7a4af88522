import { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProfileId, ProjectId, ReplayId, SessionId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { ManagedAuthBrowserConfig } from '@berth/contract/managed-auth/connection.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { z } from 'zod'
import type { CommandOptions } from '../../agent-link/command-agent.ts'

/** Longer than any flow. Ends a session that is left when its server is killed. */
const idleSeconds = 25 * 60
/** The tag of its sessions. The value is the id of a flow or check. */
export const authTagName = 'berth.managed_auth'
const answerBytes = 1024 ** 2
/** Added to the time limit of the page. */
const commandMilliseconds = 15_000

/** The part of a session that managed auth uses. */
export interface AuthSession {
  readonly id: SessionId
  readonly telemetry: object | null
}

export interface AuthBrowsersOptions {
  readonly createSession: (projectId: ProjectId, request: BrowserRequest, signal: AbortSignal) => Promise<AuthSession>
  readonly findSession: (projectId: ProjectId, id: SessionId) => Promise<AuthSession | undefined>
  /** Makes the session save its profile when it ends. */
  readonly keepChanges: (id: SessionId) => Promise<void>
  /** When the current state of the profile was saved. */
  readonly savedAt: (profileId: ProfileId) => Promise<Date | null | undefined>
  /** Does nothing if another server has the session. */
  readonly endSession: (id: SessionId) => Promise<void>
  readonly record: (projectId: ProjectId, id: SessionId) => Promise<{ readonly id: ReplayId }>
  readonly command: <Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options: CommandOptions,
  ) => Promise<z.output<Reply>>
  readonly logger: Logger
}

interface AuthBrowserRequest {
  readonly projectId: ProjectId
  readonly profileId: ProfileId
  readonly browser: ManagedAuthBrowserConfig
  /** The id of the flow or check. */
  readonly purpose: string
}

/** The sessions of flows and checks: ordinary headful sessions of the project with the profile. */
export class AuthBrowsers {
  readonly #options: AuthBrowsersOptions

  constructor(options: AuthBrowsersOptions) {
    this.#options = options
  }

  async start(
    { projectId, profileId, browser, purpose }: AuthBrowserRequest,
    signal: AbortSignal,
  ): Promise<AuthSession> {
    const { proxy, region, stealth, telemetry } = browser
    const request = BrowserRequest.parse({
      headless: false,
      stealth: stealth ?? true,
      ...(proxy && { proxy }),
      ...(region && { region }),
      ...(telemetry && { telemetry }),
      // Only a successful login changes the profile.
      profile: { id: profileId, save_changes: false },
      // Instead of the tabs of the profile.
      start_url: 'about:blank',
      timeout_seconds: idleSeconds,
      tags: { [authTagName]: purpose },
    })
    return this.#options.createSession(projectId, request, signal)
  }

  async find(projectId: ProjectId, id: SessionId): Promise<AuthSession | undefined> {
    return this.#options.findSession(projectId, id)
  }

  /** Undefined if recording fails, which does not stop the login. */
  async record(projectId: ProjectId, id: SessionId): Promise<ReplayId | undefined> {
    try {
      return (await this.#options.record(projectId, id)).id
    } catch (error) {
      this.#options.logger.warn({ err: error, sessionId: id }, 'could not record a login')
      return undefined
    }
  }

  /** Sends a login command to the agent of a session. */
  async ask<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body> & { readonly timeout_ms: number; readonly wait_ms?: number },
    signal: AbortSignal,
  ): Promise<z.output<Reply>> {
    const limitMilliseconds = body.timeout_ms + (body.wait_ms ?? 0) + commandMilliseconds
    return this.#options.command(id, endpoint, body, { limitMilliseconds, maxAnswerBytes: answerBytes, signal })
  }

  /** Ends the session and saves its profile. Safe to repeat. */
  async endAndKeep(id: SessionId, profileId: ProfileId, began: Date): Promise<boolean> {
    await this.#options.keepChanges(id).catch(() => {}) // The session has already ended. Only the profile matters.
    await this.#options.endSession(id)
    const savedAt = await this.#options.savedAt(profileId)
    return savedAt !== null && savedAt !== undefined && savedAt >= began
  }

  /** Ends the session without saving the profile. */
  async end(id: SessionId): Promise<void> {
    await this.#options
      .endSession(id)
      .catch((error: unknown) =>
        this.#options.logger.warn(
          { err: error, sessionId: id },
          'could not end the session of a login; it ends by its timeout',
        ),
      )
  }
}
