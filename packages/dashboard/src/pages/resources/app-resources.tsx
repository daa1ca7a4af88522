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
import { actions, columns, lists, values } from '../../strings/lists.ts'
import { age, toned } from './columns.tsx'
import { defineResource, type Resource } from './resource.ts'

export const appResources: readonly Resource[] = [
  defineResource({
    path: 'apps',
    ...lists.apps,
    guide: 'apps',
    list: listApps,
    searchBy: 'query',
    columns: [
      { title: columns.app, value: ({ app_name }) => app_name },
      { title: columns.version, value: ({ version }) => version },
      { title: columns.actions, value: ({ actions }) => actions.map(({ name }) => name).join(', ') },
      { title: columns.deployment, value: ({ deployment }) => deployment },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ app_name }) => app_name,
  }),
  defineResource({
    path: 'deployments',
    ...lists.deployments,
    guide: 'apps',
    list: listDeployments,
    searchBy: 'query',
    columns: [
      { title: columns.deployment, value: ({ id }) => id },
      { title: columns.status, value: ({ status }) => toned(status) },
      { title: columns.reason, value: ({ status_reason }) => status_reason },
      { title: columns.entrypoint, value: ({ entrypoint_rel_path }) => entrypoint_rel_path },
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
    ...lists.invocations,
    guide: 'apps',
    list: listInvocations,
    searchBy: 'query',
    columns: [
      { title: columns.action, value: ({ app_name, action_name }) => `${app_name}: ${action_name}` },
      { title: columns.status, value: ({ status }) => toned(status) },
      { title: columns.result, value: ({ output, status_reason }) => (output ?? status_reason)?.slice(0, 200) },
      { title: columns.started, value: ({ started_at }) => <Age since={started_at} /> },
    ],
    keyOf: ({ id }) => id,
    nameOf: ({ id }) => id,
    create: createInvocation,
    log: followInvocation,
    actions: [
      {
        label: actions.cancel,
        endpoint: updateInvocation,
        body: () => ({ status: 'failed' }),
        messageOf: () => values.cancelled,
        isOffered: ({ finished_at }) => finished_at === null,
      },
    ],
  }),
]
