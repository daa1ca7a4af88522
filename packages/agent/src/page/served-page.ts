import {
  activateTab,
  clickElement,
  closeTab,
  extractPage,
  listTabs,
  navigatePage,
  openTab,
  pressPageKey,
  selectOptions,
  snapshotPage,
  takeMarkedScreenshot,
  typeIntoElement,
  uploadToElement,
  waitForPage,
} from '@berth/contract/agent/operations/page-operations.ts'
import { type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { PageTools } from './page-tools.ts'

/** Pages as text with references. */
export function servedPage({ browser }: OperationContext): readonly ServedOperation[] {
  const pages = new PageTools(browser)
  return [
    serve(snapshotPage, ({ body }) => pages.snapshot(body)),
    serve(navigatePage, ({ body, signal }) => pages.navigate(body, signal)),
    serve(clickElement, ({ body }) => pages.click(body)),
    serve(typeIntoElement, ({ body }) => pages.type(body)),
    serve(selectOptions, ({ body }) => pages.select(body)),
    serve(pressPageKey, ({ body }) => pages.press(body)),
    serve(uploadToElement, ({ body }) => pages.upload(body)),
    serve(waitForPage, ({ body, signal }) => pages.waitFor(body, signal)),
    serve(extractPage, ({ body }) => pages.extract(body)),
    serve(takeMarkedScreenshot, async ({ body }) => {
      const { marks, ...picture } = await pages.screenshot(body)
      return { ...picture, marks: [...marks] }
    }),
    serve(listTabs, async () => {
      const tabs = await pages.tabs.list()
      return { tabs: tabs.map(({ id, url, title }, index) => ({ tab_id: id, url, title, is_active: index === 0 })) }
    }),
    serve(openTab, ({ body, signal }) => pages.open(body.url, signal)),
    serve(activateTab, ({ params }) => pages.tabs.activate(params.tab_id)),
    serve(closeTab, ({ params }) => pages.tabs.close(params.tab_id)),
  ]
}
