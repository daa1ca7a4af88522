import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/client.ts'
import { router } from './app/router.tsx'
import './styles.css'

const contextKey = 'context'

/** Queries again who is signed in, so that a session that was ended elsewhere leads to the sign-in page. */
function noteRefusal(error: Error): void {
  if (error instanceof ApiError && error.status === 401) void queries.invalidateQueries({ queryKey: [contextKey] })
}

const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      if (queryKey[0] !== contextKey) noteRefusal(error)
    },
  }),
  mutationCache: new MutationCache({ onError: noteRefusal }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // Client errors are not retried.
      retry: (count, error) => count < 2 && !(error instanceof ApiError && error.status < 500),
    },
  },
})

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
