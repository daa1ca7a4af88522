import type { Browser } from '@berth/contract/browsers/browser.ts'
import { Badge } from '../../components/feedback.tsx'
import { words } from '../../strings/sessions.ts'

export function stateOf({ deleted_at }: Browser): 'active' | 'ended' {
  return deleted_at ? 'ended' : 'active'
}

export function SessionBadges({ session }: { readonly session: Browser }) {
  const { headless, stealth, gpu, kiosk_mode, profile, pool } = session
  return (
    <span className="badges">
      <Badge>{headless ? words.headless : words.headful}</Badge>
      {stealth && <Badge>{words.stealth}</Badge>}
      {gpu && <Badge>{words.gpu}</Badge>}
      {kiosk_mode && <Badge>{words.kiosk}</Badge>}
      {profile && <Badge>{words.profile(profile.name ?? profile.id)}</Badge>}
      {pool && <Badge>{words.pool(pool.name ?? pool.id)}</Badge>}
    </span>
  )
}
