import { Link } from '@tanstack/react-router'
import { PageTitle } from '../components/page-title.tsx'
import { words } from '../strings/missing-page.ts'

/** In the place of a page that does not exist. */
export function MissingPage() {
  return (
    <div className="empty">
      <PageTitle>{words.title}</PageTitle>
      <p>{words.hint}</p>
      <Link to="/sessions">{words.home}</Link>
    </div>
  )
}
