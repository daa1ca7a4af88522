import type { TargetSession } from '../browser/targets/target-session.ts'
import { findPlace, focusElement, pressElement, submitForm } from './in-page/act-in-page.ts'
import { callIn, type LoginFrame } from './login-frames.ts'

/** A page that runs a dialog answers only afterwards. */
const inputMilliseconds = 3_000

interface Place {
  readonly outcome: 'found' | 'gone'
  readonly x: number
  readonly y: number
  readonly isOnTop: boolean
  readonly isDisabled: boolean
}

/** Presses an element: with the pointer if it reaches the element, otherwise with a synthetic click. */
export async function press(frame: LoginFrame, at: number): Promise<'pressed' | 'gone' | 'disabled'> {
  const place = await callIn<Place>(frame, findPlace, [at])
  if (!place || place.outcome === 'gone') return 'gone'
  if (place.isDisabled) return 'disabled'
  const isPage = frame.isOfPage && (await isMainFrame(frame))
  if (place.isOnTop && isPage) {
    await click(frame.session, place)
    return 'pressed'
  }
  const hasPressed = await callIn<boolean>(frame, pressElement, [at], inputMilliseconds)
  // Without an answer, the press has closed the document or opened a dialog.
  return hasPressed === false ? 'gone' : 'pressed'
}

/** Coordinates within other frames differ from those of the page. */
async function isMainFrame({ session, frameId }: LoginFrame): Promise<boolean> {
  const tree = await session.send('Page.getFrameTree', undefined, inputMilliseconds).catch(() => undefined)
  return tree?.frameTree.frame.id === frameId
}

async function click(session: TargetSession, { x, y }: Place): Promise<void> {
  const mouse = { x, y, button: 'left', clickCount: 1 } as const
  const send = (type: 'mouseMoved' | 'mousePressed' | 'mouseReleased', buttons: number) =>
    // The page may be gone, or have an open dialog.
    session.send('Input.dispatchMouseEvent', { ...mouse, type, buttons }, inputMilliseconds).catch(() => {})
  await send('mouseMoved', 0)
  await send('mousePressed', 1)
  await send('mouseReleased', 0)
}

/** Submits a form without a button: with the Enter key, or else by script. */
export async function submitByKey(frame: LoginFrame, at: number): Promise<void> {
  const hasFocus = await callIn<boolean>(frame, focusElement, [at])
  if (!hasFocus || !frame.isOfPage) {
    await callIn(frame, submitForm, [at], inputMilliseconds)
    return
  }
  const key = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' }
  const send = (type: 'keyDown' | 'keyUp') =>
    // As for the pointer.
    frame.session.send('Input.dispatchKeyEvent', { type, ...key }, inputMilliseconds).catch(() => {})
  await send('keyDown')
  await send('keyUp')
}
