import { useSyncExternalStore } from 'react'
import { onProject, readProject } from './project.ts'

export function useChosenProject(): string | undefined {
  return useSyncExternalStore(onProject, readProject)
}
