import { appResources } from './app-resources.tsx'
import { browserResources } from './browser-resources.tsx'
import { organizationResources } from './organization-resources.tsx'
import type { Resource } from './resource.ts'
import { secretResources } from './secret-resources.tsx'

/** The resources in the menu, except those with pages of their own. A new resource is one more entry. */
export const resources: readonly Resource[] = [
  ...browserResources,
  ...appResources,
  ...secretResources,
  ...organizationResources,
]
