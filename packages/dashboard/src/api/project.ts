const key = 'berth.project'
const listeners = new Set<() => void>()

/** The chosen project; undefined for the key's default project. It is not secret, and the browser stores it. */
export function readProject(): string | undefined {
  return localStorage.getItem(key) ?? undefined
}

export function chooseProject(id: string | undefined): void {
  if (id === undefined) localStorage.removeItem(key)
  else localStorage.setItem(key, id)
  for (const listener of listeners) listener()
}

export function onProject(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}
