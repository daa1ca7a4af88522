import {
  createDeployment,
  createInvocation,
  deleteDeployment,
  followDeployment,
  followInvocation,
  listApps,
  listDeployments,
  listInvocations,
  updateInvocation,
} from '@berth/contract/apps/app-endpoints.ts'
import { Age } from '../../components/format.tsx'
import { age, toned } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'

export const appResources: readonly Resource[] = [
  defineResource({
    path: 'apps',
    title: 'Apps',
    one: 'app',
    empty: 'No app is deployed.',
    guide: 'apps',
    list: listApps,
    searchBy: 'query',
    columns: [
      { title: 'App', value: ({ app_name }) => app_name },
      { title: 'Version', value: ({ version }) => version },
      { title: 'Actions', value: ({ actions }) => actions.map(({ name }) => name).join(', ') },
      { title: 'Deployment', value: ({ deployment }) => deployment },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ app_name }) => app_name,
  }),
  defineResource({
    path: 'deployments',
    title: 'Deployments',
    one: 'deployment',
    empty: 'No deployment.',
    guide: 'apps',
    list: listDeployments,
    searchBy: 'query',
    columns: [
      { title: 'Deployment', value: ({ id }) => id },
      { title: 'Status', value: ({ status }) => toned(status) },
      { title: 'Reason', value: ({ status_reason }) => status_reason },
      { title: 'Entrypoint', value: ({ entrypoint_rel_path }) => entrypoint_rel_path },
      age(),
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ id }) => id,
    create: createDeployment,
    remove: deleteDeployment,
    log: followDeployment,
  }),
  defineResource({
    path: 'invocations',
    title: 'Invocations',
    one: 'invocation',
    empty: 'No invocation.',
    guide: 'apps',
    list: listInvocations,
    searchBy: 'query',
    columns: [
      { title: 'Action', value: ({ app_name, action_name }) => `${app_name}: ${action_name}` },
      { title: 'Status', value: ({ status }) => toned(status) },
      { title: 'Result', value: ({ output, status_reason }) => (output ?? status_reason)?.slice(0, 200) },
      { title: 'Started', value: ({ started_at }) => <Age since={started_at} /> },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ id }) => id,
    create: createInvocation,
    log: followInvocation,
    actions: [
      {
        label: 'Cancel',
        endpoint: updateInvocation,
        body: () => ({ status: 'failed' }),
        messageOf: () => 'It is cancelled, and its sessions end.',
        isOffered: ({ finished_at }) => finished_at === null,
      },
    ],
  }),
]
