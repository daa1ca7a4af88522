import { Link } from '@tanstack/react-router'
import { PageTitle } from '../components/page-title.tsx'
import { words } from '../strings/missing-page.ts'

/** Shown for an unknown address. */
export function MissingPage() {
  return (
    <div className="empty">
      <PageTitle>{words.title}</PageTitle>
      <p>{words.hint}</p>
      <Link to="/sessions">{words.home}</Link>
    </div>
  )
}
