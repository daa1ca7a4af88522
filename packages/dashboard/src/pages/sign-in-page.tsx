import { type SignInRequest, signIn } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { call } from '../api/client.ts'
import { chooseProject } from '../api/project.ts'
import { Failure } from '../components/feedback.tsx'
import { Logo } from '../components/logo.tsx'
import { words } from '../strings/sign-in.ts'

export function SignInPage() {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [key, setKey] = useState('')
  const [code] = useState(() => /^#code=([\w-]+)$/.exec(location.hash)?.[1])
  const enter = useMutation({
    mutationFn: (body: SignInRequest) => call(signIn, { body, project: null }),
    onSuccess: async () => {
      chooseProject(undefined)
      queries.clear()
      await navigate({ to: '/sessions', search: {}, replace: true })
    },
  })
  const { mutate } = enter
  useEffect(() => {
    if (code === undefined) return
    // Removed from the history, because it works only once.
    history.replaceState(history.state, '', location.pathname)
    mutate({ code })
  }, [code, mutate])

  const submit = (event: FormEvent) => {
    event.preventDefault()
    enter.mutate({ api_key: key })
  }
  return (
    <main className="sign-in">
      <form onSubmit={submit} className="card">
        <Logo />
        <h1>{words.title}</h1>
        <div className="field">
          <label htmlFor="key">{words.key}</label>
          <input
            id="key"
            type="password"
            autoComplete="current-password"
            aria-describedby="key-hint"
            value={key}
            onChange={({ target }) => setKey(target.value)}
          />
          <p className="hint" id="key-hint">
            {words.hint}
          </p>
        </div>
        <Failure error={enter.error} />
        <button type="submit" className="primary" disabled={enter.isPending || key === ''}>
          {enter.isPending && code ? words.link : words.submit}
        </button>
      </form>
    </main>
  )
}
