import {
  batchComputerAction,
  clickMouse,
  dragMouse,
  getMousePosition,
  moveMouse,
  pressKey,
  readClipboard,
  scroll,
  setCursor,
  takeScreenshot,
  typeText,
  writeClipboard,
} from '@berth/contract/agent/operations/computer-operations.ts'
import { Content, type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'

/** Mouse, keyboard, screen and clipboard. */
export function servedComputer({ computer }: OperationContext): readonly ServedOperation[] {
  return [
    serve(clickMouse, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.click(body))),
    serve(moveMouse, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.move(body))),
    serve(typeText, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.type(body))),
    serve(pressKey, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.press(body))),
    serve(scroll, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.scroll(body))),
    serve(dragMouse, async ({ body, signal }) => (await computer()).act(signal, (actions) => actions.drag(body))),
    serve(batchComputerAction, async ({ body, signal }) => (await computer()).batch(signal, body.actions)),
    serve(takeScreenshot, async ({ body, signal }) => {
      return new Content(await (await computer()).picture(signal, body.region))
    }),
    serve(setCursor, async ({ body, signal }) => {
      await (await computer()).setPointerHidden(signal, body.hidden)
      return { ok: true }
    }),
    serve(getMousePosition, async ({ signal }) => (await computer()).pointer(signal)),
    serve(readClipboard, async ({ signal }) => ({ text: await (await computer()).readClipboard(signal) })),
    serve(writeClipboard, async ({ body, signal }) => (await computer()).writeClipboard(signal, body.text)),
  ]
}
