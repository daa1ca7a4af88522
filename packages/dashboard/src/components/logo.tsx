export function Logo() {
  return (
    <svg className="logo" aria-hidden="true" viewBox="0 0 20 20" width="20" height="20">
      <rect width="20" height="20" rx="5" />
      <path d="M5 5v8a2 2 0 0 0 2 2h6a2 2 0 0 0 2-2V5M10 4v7" />
    </svg>
  )
}
