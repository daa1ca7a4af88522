import type { Project as ProjectAnswer, ProjectLimits } from '@berth/contract/projects/project.ts'
import type { Project } from './project-store.ts'

/** Formats a project for callers. */
export function projectRecord(project: Project): ProjectAnswer {
  return {
    id: project.id,
    name: project.name,
    status: project.archived_at ? 'archived' : 'active',
    created_at: project.created_at.toISOString(),
    updated_at: project.updated_at.toISOString(),
  }
}

export function limitsRecord(project: Project): ProjectLimits {
  return {
    max_concurrent_sessions: project.max_concurrent_sessions,
    max_concurrent_invocations: project.max_concurrent_invocations,
    max_pooled_sessions: null,
  }
}
