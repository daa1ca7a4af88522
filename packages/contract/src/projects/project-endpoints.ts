import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Project, ProjectLimits, ProjectLimitsUpdate, ProjectName, ProjectStatus } from './project.ts'

const tag = 'Projects'
const OneProject = z.object({
  id_or_name: z.string().min(1).max(1024).meta({ description: 'Project id or name. Ids are looked up first.' }),
})

export const createProject = defineEndpoint({
  operationId: 'createProject',
  method: 'POST',
  path: '/org/projects',
  summary: 'Create a project',
  tag,
  access: 'organization',
  body: z.object({ name: ProjectName }),
  reply: Project,
  status: 201,
  errors: ['projects_disabled', 'project_name_taken'],
})

export const listProjects = defineEndpoint({
  operationId: 'listProjects',
  method: 'GET',
  path: '/org/projects',
  summary: 'List projects',
  description: 'Active and archived projects, newest first. A key of one project only sees that project.',
  tag,
  access: 'organization',
  query: PageQuery.extend({
    query: SearchText.optional().meta({ description: 'Text to find in the name. Case is ignored.' }),
    name: SearchText.optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
  }),
  reply: z.array(Project),
  paged: true,
  status: 200,
  errors: ['projects_disabled'],
})

export const getProject = defineEndpoint({
  operationId: 'getProject',
  method: 'GET',
  path: '/org/projects/{id_or_name}',
  summary: 'Get a project',
  tag,
  access: 'organization',
  params: OneProject,
  reply: Project,
  status: 200,
  errors: ['projects_disabled'],
})

export const updateProject = defineEndpoint({
  operationId: 'updateProject',
  method: 'PATCH',
  path: '/org/projects/{id_or_name}',
  summary: 'Rename, archive or reactivate a project',
  description: 'Requests for an archived project get 404. Its sessions continue.',
  tag,
  access: 'organization',
  params: OneProject,
  body: z.object({ name: ProjectName.optional(), status: ProjectStatus.optional() }),
  reply: Project,
  status: 200,
  errors: ['projects_disabled', 'project_name_taken', 'last_active_project'],
})

export const deleteProject = defineEndpoint({
  operationId: 'deleteProject',
  method: 'DELETE',
  path: '/org/projects/{id_or_name}',
  summary: 'Delete an empty project',
  tag,
  access: 'organization',
  params: OneProject,
  status: 204,
  errors: ['projects_disabled', 'project_not_empty', 'last_active_project'],
})

export const getProjectLimits = defineEndpoint({
  operationId: 'getProjectLimits',
  method: 'GET',
  path: '/org/projects/{id_or_name}/limits',
  summary: 'Get the limits of a project',
  tag,
  access: 'organization',
  params: OneProject,
  reply: ProjectLimits,
  status: 200,
  errors: ['projects_disabled'],
})

export const updateProjectLimits = defineEndpoint({
  operationId: 'updateProjectLimits',
  method: 'PATCH',
  path: '/org/projects/{id_or_name}/limits',
  summary: 'Change the limits of a project',
  tag,
  access: 'organization',
  params: OneProject,
  body: ProjectLimitsUpdate,
  reply: ProjectLimits,
  status: 200,
  errors: ['projects_disabled'],
})
