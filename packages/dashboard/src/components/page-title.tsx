import { useEffect } from 'react'

const product = 'berth'

/** The heading of a page, which is also the title of its browser tab. */
export function PageTitle({ children: title }: { readonly children: string }) {
  useEffect(() => {
    document.title = `${title} · ${product}`
    return () => {
      document.title = product
    }
  }, [title])
  return <h1>{title}</h1>
}
