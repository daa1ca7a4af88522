import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { SessionTokens } from '../../../access/session-tokens.ts'
import type { ProfileService } from '../../profiles/profile-service.ts'
import type { Session } from './session.ts'
import { sessionUrls } from './session-urls.ts'

interface SessionRecordsOptions {
  readonly tokens: SessionTokens
  readonly profiles: ProfileService
  readonly clock: Clock
}

/** Writes sessions as callers see them. */
export class SessionRecords {
  readonly #tokens: SessionTokens
  readonly #profiles: ProfileService
  readonly #clock: Clock

  constructor({ tokens, profiles, clock }: SessionRecordsOptions) {
    this.#tokens = tokens
    this.#profiles = profiles
    this.#clock = clock
  }

  /** `publicUrl` is where the caller reaches berth. */
  async write(session: Session, publicUrl: string): Promise<Browser> {
    const [record] = await this.writeAll([session], publicUrl)
    return record as Browser
  }

  /** Asks for all profiles at once. */
  async writeAll(sessions: readonly Session[], publicUrl: string): Promise<readonly Browser[]> {
    const ids = new Set(sessions.flatMap(({ profile_id }) => profile_id ?? []))
    const profiles = await this.#profiles.recordsOf([...ids])
    return Promise.all(
      sessions.map((session) =>
        this.#write(session, session.profile_id && profiles.get(session.profile_id), publicUrl),
      ),
    )
  }

  async #write(session: Session, profile: Profile | null | undefined, publicUrl: string): Promise<Browser> {
    const token = await this.#tokens.issue(session.id, session.created_at)
    const uptime =
      session.uptime_ms ?? (session.deleted_at ?? this.#clock.now()).getTime() - session.created_at.getTime()
    return {
      session_id: session.id,
      created_at: session.created_at.toISOString(),
      ...sessionUrls(publicUrl, session.id, token),
      ...(session.name !== null && { name: session.name }),
      region: session.region,
      stealth: session.stealth,
      headless: session.headless,
      gpu: session.gpu,
      kiosk_mode: session.kiosk_mode,
      memory: session.memory,
      timeout_seconds: session.timeout_seconds,
      viewport: session.viewport,
      ...(session.start_url !== null && { start_url: session.start_url }),
      ...(Object.keys(session.tags).length > 0 && { tags: session.tags }),
      ...(Object.keys(session.chrome_policy).length > 0 && {
        chrome_policy: session.chrome_policy as Browser['chrome_policy'],
      }),
      ...(profile && {
        profile,
        profile_save_changes: session.profile_save_changes ?? false,
      }),
      ...(session.keep_downloads && { keep_downloads: true }),
      proxy: session.proxy,
      ...('id' in session.proxy && { proxy_id: session.proxy.id }),
      disable_default_proxy: 'mode' in session.proxy && session.proxy.mode === 'direct',
      ...(session.network && { network: session.network }),
      telemetry: session.telemetry,
      usage: { uptime_ms: Math.max(0, Math.round(uptime)) },
      ...(session.deleted_at && {
        deleted_at: session.deleted_at.toISOString(),
        usage_status: session.state === 'deleted' ? 'ready' : 'pending',
      }),
    }
  }
}
