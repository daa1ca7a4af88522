import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { LiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { SessionTokens } from '../../../access/session-tokens.ts'
import type { ProfileService } from '../../profiles/profile-service.ts'
import { vaultReferences } from '../../vaults/vault-record.ts'
import type { CaptchaSolving } from '../captchas/captcha-solving.ts'
import type { PoolStore } from '../pools/pool-store.ts'
import type { Session } from './session.ts'
import { liveViewUrl, sessionUrls } from './session-urls.ts'

interface SessionRecordsOptions {
  readonly tokens: SessionTokens
  readonly profiles: ProfileService
  readonly pools: Pick<PoolStore, 'namesOf'>
  readonly captchas: Pick<CaptchaSolving, 'solvesFor'>
  readonly clock: Clock
}

/** What the record of a session contains of its related resources. */
interface Referred {
  readonly profile: Profile | null | undefined
  readonly poolName: string | null | undefined
}

/** Formats sessions for callers. */
export class SessionRecords {
  readonly #tokens: SessionTokens
  readonly #profiles: ProfileService
  readonly #pools: Pick<PoolStore, 'namesOf'>
  readonly #captchas: Pick<CaptchaSolving, 'solvesFor'>
  readonly #clock: Clock

  constructor({ tokens, profiles, pools, captchas, clock }: SessionRecordsOptions) {
    this.#tokens = tokens
    this.#profiles = profiles
    this.#pools = pools
    this.#captchas = captchas
    this.#clock = clock
  }

  /** `publicUrl` is the address where the caller reaches berth. */
  async write(session: Session, publicUrl: string): Promise<Browser> {
    const [record] = await this.writeAll([session], publicUrl)
    return record as Browser
  }

  /** Looks up all profiles and pools together. */
  async writeAll(sessions: readonly Session[], publicUrl: string): Promise<readonly Browser[]> {
    const ids = new Set(sessions.flatMap(({ profile_id }) => profile_id ?? []))
    const poolIds = new Set(sessions.flatMap(({ pool_id }) => pool_id ?? []))
    const [profiles, poolNames] = await Promise.all([
      this.#profiles.recordsOf([...ids]),
      this.#pools.namesOf([...poolIds]),
    ])
    return Promise.all(
      sessions.map((session) => {
        const profile = session.profile_id && profiles.get(session.profile_id)
        const poolName = session.pool_id && poolNames.get(session.pool_id)
        return this.#write(session, { profile, poolName }, publicUrl)
      }),
    )
  }

  async liveView({ id, created_at, headless, lease_number }: Session, publicUrl: string): Promise<LiveView> {
    const [token, viewToken] = await Promise.all([
      this.#tokens.issue(id, created_at, lease_number),
      this.#tokens.issueForView(id, created_at, lease_number),
    ])
    return {
      url: liveViewUrl(publicUrl, id, token),
      read_only_url: `${liveViewUrl(publicUrl, id, viewToken)}&readOnly=true`,
      source: headless ? 'page' : 'display',
    }
  }

  async #write(session: Session, { profile, poolName }: Referred, publicUrl: string): Promise<Browser> {
    const token = await this.#tokens.issue(session.id, session.created_at, session.lease_number)
    const uptime = session.uptime_ms ?? awakeMilliseconds(session, session.deleted_at ?? this.#clock.now())
    return {
      session_id: session.id,
      created_at: session.created_at.toISOString(),
      ...sessionUrls(publicUrl, session.id, token),
      ...(!session.headless && { browser_live_view_url: liveViewUrl(publicUrl, session.id, token) }),
      ...(session.name !== null && { name: session.name }),
      region: session.region,
      stealth: session.stealth,
      ...(this.#captchas.solvesFor(session) && { captcha_solver: true as const }),
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
      ...(session.pool_id && { pool: { id: session.pool_id, ...(poolName && { name: poolName }) } }),
      ...(profile && {
        profile,
        profile_save_changes: session.profile_save_changes ?? false,
      }),
      ...(session.keep_downloads && { keep_downloads: true }),
      proxy: session.proxy,
      ...('id' in session.proxy && { proxy_id: session.proxy.id }),
      disable_default_proxy: 'mode' in session.proxy && session.proxy.mode === 'direct',
      ...(session.network && { network: session.network }),
      ...(session.vaults && { vaults: vaultReferences(session.vaults) }),
      telemetry: session.telemetry,
      usage: { uptime_ms: Math.max(0, Math.round(uptime)) },
      ...(session.deleted_at && {
        deleted_at: session.deleted_at.toISOString(),
        usage_status: session.state === 'deleted' ? 'ready' : 'pending',
      }),
    }
  }
}

/** How long its machine has run. The function of the same name in the database computes it for ended sessions. */
function awakeMilliseconds({ created_at, standby_since, standby_ms }: Session, now: Date): number {
  const frozenNow = standby_since ? Math.max(0, now.getTime() - standby_since.getTime()) : 0
  return now.getTime() - created_at.getTime() - standby_ms - frozenNow
}
