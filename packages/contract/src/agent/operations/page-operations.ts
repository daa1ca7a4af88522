import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { AbsolutePath } from './fs-types.ts'

const tag = 'Browser Pages'

const maxUrlLength = 8192
const maxTextLength = 100_000

const Tab = z
  .string()
  .regex(/^t\d{1,9}$/, { error: 'must be a tab of the list, such as t1' })
  .optional()
  .meta({ description: 'Default: the tab in front.' })

const Ref = z
  .string()
  .regex(/^(f\d{1,9})?e\d{1,9}$/, { error: 'must be a reference of a snapshot, such as e5 or f2e5' })
  .meta({ description: 'The element, as a snapshot names it. Valid as long as the element is in the page.' })

const Timeout = z.int().min(0).max(120_000).default(10_000)

const Place = z.object({ tab_id: z.string(), url: z.string(), title: z.string() })

export const PageSnapshot = Place.extend({
  text: z.string().meta({
    description: 'The page as assistive technology reads it, a line for each element or text. e5 is a reference.',
  }),
  is_truncated: z.boolean(),
}).meta({ id: 'PageSnapshot' })
export type PageSnapshot = z.infer<typeof PageSnapshot>

export const SnapshotRequest = z.strictObject({
  tab_id: Tab,
  changes: z.boolean().default(false).meta({
    description: 'Only the lines that were added (+) or removed (-) since the last snapshot of the tab.',
  }),
  interactive: z.boolean().default(false).meta({ description: 'Only interactive elements.' }),
  max_chars: z.int().min(200).max(200_000).default(20_000).meta({ description: 'One token is about four characters.' }),
})
export type SnapshotRequest = z.output<typeof SnapshotRequest>

export const NavigateRequest = z
  .strictObject({
    tab_id: Tab,
    url: z.string().min(1).max(maxUrlLength).optional(),
    history: z.enum(['back', 'forward', 'reload']).optional(),
    timeout_ms: Timeout.default(30_000),
  })
  .refine(({ url, history }) => (url === undefined) !== (history === undefined), {
    path: ['url'],
    error: 'give either url or history',
  })
export type NavigateRequest = z.output<typeof NavigateRequest>

export const ClickRequest = z.strictObject({
  tab_id: Tab,
  ref: Ref,
  button: z.enum(['left', 'middle', 'right']).default('left'),
  clicks: z.int().min(1).max(3).default(1),
})
export type ClickRequest = z.output<typeof ClickRequest>

export const TypeRequest = z.strictObject({
  tab_id: Tab,
  ref: Ref,
  text: z.string().max(maxTextLength),
  append: z.boolean().default(false).meta({ description: 'Keep the present text of the field.' }),
  submit: z.boolean().default(false).meta({ description: 'Press Enter afterwards.' }),
})
export type TypeRequest = z.output<typeof TypeRequest>

export const SelectRequest = z.strictObject({
  tab_id: Tab,
  ref: Ref,
  values: z.array(z.string().max(1000)).min(1).max(100).meta({ description: 'Values or labels of options.' }),
})
export type SelectRequest = z.output<typeof SelectRequest>

export const PressRequest = z.strictObject({
  tab_id: Tab,
  key: z.string().min(1).max(100).meta({ description: 'A key, or several with `+`: `Control+A`.' }),
  ref: Ref.optional(),
})
export type PressRequest = z.output<typeof PressRequest>

export const UploadRequest = z.strictObject({
  tab_id: Tab,
  ref: Ref,
  paths: z.array(AbsolutePath).min(1).max(20).meta({ description: 'Files of the session.' }),
})
export type UploadRequest = z.output<typeof UploadRequest>

export const WaitRequest = z
  .strictObject({
    tab_id: Tab,
    text: z.string().min(1).max(1000).optional().meta({ description: 'Waits until the page shows this text.' }),
    text_gone: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .meta({ description: 'Waits until the page no longer shows this text.' }),
    url: z.string().min(1).max(1000).optional().meta({ description: 'Waits until the URL contains this text.' }),
    timeout_ms: Timeout,
  })
  .refine(({ text, text_gone, url }) => [text, text_gone, url].some((each) => each !== undefined), {
    path: ['text'],
    error: 'give text, text_gone or url',
  })
export type WaitRequest = z.output<typeof WaitRequest>

export const ExtractRequest = z.strictObject({
  tab_id: Tab,
  max_chars: z.int().min(200).max(200_000).default(20_000),
})
export type ExtractRequest = z.output<typeof ExtractRequest>

export const MarkedScreenshotRequest = z.strictObject({ tab_id: Tab, marks: z.boolean().default(true) })

const TabInfo = Place.extend({ is_active: z.boolean() }).meta({ id: 'PageTab' })

const errors = ['page_not_found', 'page_not_answering'] as const
const elementErrors = [...errors, 'element_not_found', 'element_not_usable'] as const
const common = { tag, category: 'control', method: 'POST', status: 200 } as const

export const snapshotPage = defineOperation({
  ...common,
  operationId: 'snapshotPage',
  path: '/page/snapshot',
  summary: 'Read a page as assistive technology does',
  description: 'Contains references for the other operations. Includes frames and open shadow trees.',
  body: SnapshotRequest.default(SnapshotRequest.parse({})),
  reply: PageSnapshot,
  errors,
})

export const navigatePage = defineOperation({
  ...common,
  operationId: 'navigatePage',
  path: '/page/navigate',
  summary: 'Go to a URL, or in the history of a tab',
  description: 'Responds when the document has loaded or the timeout has passed.',
  body: NavigateRequest,
  reply: Place.meta({ id: 'PagePlace' }),
  errors: [...errors, 'navigation_failed'],
})

export const clickElement = defineOperation({
  ...common,
  operationId: 'clickElement',
  path: '/page/click',
  summary: 'Click an element',
  description: 'Scrolls it into view. Fails for an element that is covered, hidden or disabled.',
  body: ClickRequest,
  errors: elementErrors,
})

export const typeIntoElement = defineOperation({
  ...common,
  operationId: 'typeIntoElement',
  path: '/page/type',
  summary: 'Type into an element',
  body: TypeRequest,
  errors: elementErrors,
})

export const selectOptions = defineOperation({
  ...common,
  operationId: 'selectOptions',
  path: '/page/select',
  summary: 'Choose options of a list',
  body: SelectRequest,
  reply: z.object({ selected: z.array(z.string()) }),
  errors: elementErrors,
})

export const pressPageKey = defineOperation({
  ...common,
  operationId: 'pressPageKey',
  path: '/page/press',
  summary: 'Press a key in a page',
  body: PressRequest,
  errors: elementErrors,
})

export const uploadToElement = defineOperation({
  ...common,
  operationId: 'uploadToElement',
  path: '/page/upload',
  summary: 'Give files to a file field',
  body: UploadRequest,
  errors: [...elementErrors, 'file_not_found'],
})

export const waitForPage = defineOperation({
  ...common,
  operationId: 'waitForPage',
  path: '/page/wait_for',
  summary: 'Wait until a page shows something',
  body: WaitRequest,
  reply: Place,
  errors: [...errors, 'page_wait_timed_out'],
})

export const extractPage = defineOperation({
  ...common,
  operationId: 'extractPage',
  path: '/page/extract',
  summary: 'Read a page as Markdown',
  description: 'Without navigation, headers and footers.',
  body: ExtractRequest.default(ExtractRequest.parse({})),
  reply: Place.extend({ markdown: z.string(), is_truncated: z.boolean() }).meta({ id: 'PageMarkdown' }),
  errors,
})

export const takeMarkedScreenshot = defineOperation({
  ...common,
  operationId: 'takeMarkedScreenshot',
  path: '/page/screenshot',
  summary: 'Take a picture of a page, with references at its elements',
  body: MarkedScreenshotRequest.default(MarkedScreenshotRequest.parse({})),
  reply: Place.extend({
    png_b64: z.string(),
    marks: z.array(z.object({ ref: z.string(), x: z.number(), y: z.number(), width: z.number(), height: z.number() })),
  }).meta({ id: 'MarkedScreenshot' }),
  errors,
})

export const listTabs = defineOperation({
  ...common,
  method: 'GET',
  operationId: 'listTabs',
  path: '/page/tabs',
  summary: 'List the tabs',
  description: 'The tab in front is first.',
  reply: z.object({ tabs: z.array(TabInfo) }),
  errors: [],
})

export const openTab = defineOperation({
  ...common,
  operationId: 'openTab',
  path: '/page/tabs',
  summary: 'Open a tab',
  body: z.strictObject({ url: z.string().max(maxUrlLength).default('about:blank') }).prefault({}),
  reply: Place,
  errors: [...errors, 'navigation_failed'],
})

const OneTab = z.object({ tab_id: z.string() })

export const activateTab = defineOperation({
  ...common,
  operationId: 'activateTab',
  path: '/page/tabs/{tab_id}/activate',
  summary: 'Bring a tab to the front',
  params: OneTab,
  errors,
})

export const closeTab = defineOperation({
  ...common,
  method: 'DELETE',
  status: 204,
  operationId: 'closeTab',
  path: '/page/tabs/{tab_id}',
  summary: 'Close a tab',
  params: OneTab,
  errors,
})

export const pageOperations = [
  ...[snapshotPage, navigatePage, clickElement, typeIntoElement, selectOptions, pressPageKey, uploadToElement],
  ...[waitForPage, extractPage, takeMarkedScreenshot, listTabs, openTab, activateTab, closeTab],
] as const
