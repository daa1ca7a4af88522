import type { Browser } from '@berth/contract/browsers/browser.ts'
import { Badge } from '../../components/feedback.tsx'

export function stateOf({ deleted_at }: Browser): 'active' | 'ended' {
  return deleted_at ? 'ended' : 'active'
}

export function SessionBadges({ session }: { readonly session: Browser }) {
  const { headless, stealth, gpu, kiosk_mode, profile, pool } = session
  return (
    <span className="badges">
      <Badge>{headless ? 'headless' : 'headful'}</Badge>
      {stealth && <Badge>stealth</Badge>}
      {gpu && <Badge>GPU</Badge>}
      {kiosk_mode && <Badge>kiosk</Badge>}
      {profile && <Badge>profile {profile.name ?? profile.id}</Badge>}
      {pool && <Badge>pool {pool.name ?? pool.id}</Badge>}
    </span>
  )
}
