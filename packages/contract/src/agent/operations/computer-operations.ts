import { z } from 'zod'
import { defineOperation } from '../operation.ts'

const tag = 'Browser Computer Controls'
const category = 'control'
const errors = ['computer_action_failed'] as const

/** Pixels from the top left corner of the screen. The agent checks the bounds, because it knows the screen size. */
const Coordinate = z.int()

/* Bounds repeats and waits: an action blocks all others of its session. */
const Milliseconds = z.int().min(0).max(300_000)
const WheelTicks = z.int().min(-10_000).max(10_000)
const maxClicks = 1_000
const maxKeys = 1_000
const maxHeldKeys = 32
const maxDragPoints = 10_000

const HoldKeys = z
  .array(z.string())
  .max(maxHeldKeys)
  .default([])
  .meta({ description: 'Names of keys that are held down during the action.' })

export const ClickMouseRequest = z
  .strictObject({
    x: Coordinate,
    y: Coordinate,
    button: z.enum(['left', 'right', 'middle', 'back', 'forward']).default('left'),
    click_type: z
      .enum(['down', 'up', 'click'])
      .default('click')
      .meta({ description: 'After `down`, the button stays pressed until an `up`.' }),
    num_clicks: z
      .int()
      .max(maxClicks)
      .default(1)
      .meta({ description: '2 is a double click. Values below 1 count as 1.' }),
    hold_keys: HoldKeys,
  })
  .meta({ id: 'ClickMouseRequest' })
export type ClickMouseRequest = z.output<typeof ClickMouseRequest>
export type MouseButton = ClickMouseRequest['button']

export const MoveMouseRequest = z
  .strictObject({
    x: Coordinate,
    y: Coordinate,
    smooth: z.boolean().default(true).meta({ description: 'Move like a human instead of jumping.' }),
    duration_ms: z
      .int()
      .min(50)
      .max(5000)
      .optional()
      .meta({ description: 'Duration of a smooth movement. Depends on the distance by default.' }),
    hold_keys: HoldKeys,
  })
  .meta({ id: 'MoveMouseRequest' })
export type MoveMouseRequest = z.output<typeof MoveMouseRequest>

export const maxTypoChance = 0.1
/** Clients wait a minute for a response. */
export const maxTypingSeconds = 30

export const TypeTextRequest = z
  .strictObject({
    text: z.string(),
    delay: Milliseconds.optional().meta({
      description:
        'Milliseconds between two keys; typing is then not smooth. Unless `smooth` is false, the delay is reduced for a ' +
        `long text, so that typing takes at most ${maxTypingSeconds} s.`,
    }),
    smooth: z
      .boolean()
      .optional()
      .meta({
        description:
          'Whether it is typed in the rhythm of a person, which a long text hastens, so that it ends within ' +
          `${maxTypingSeconds} s. By default it is, unless there is a \`delay\`; when true, that is ignored.`,
      }),
    typo_chance: z
      .number()
      .min(0)
      .default(0)
      .meta({ description: `For each character, when \`smooth\`; at most ${maxTypoChance}. Typos are corrected.` }),
  })
  .meta({ id: 'TypeTextRequest' })
export type TypeTextRequest = z.output<typeof TypeTextRequest>

export const PressKeyRequest = z
  .strictObject({
    keys: z.array(z.string()).min(1).max(maxKeys).meta({
      description: 'Key names of X11 (`Return`, `F5`, `a`), or a combination: `Ctrl+Shift+Tab`.',
    }),
    duration: Milliseconds.default(0).meta({
      description: 'Milliseconds for which all keys are held down together. 0: they are pressed one after another.',
    }),
    hold_keys: HoldKeys,
  })
  .meta({ id: 'PressKeyRequest' })
export type PressKeyRequest = z.output<typeof PressKeyRequest>

export const ScrollRequest = z
  .strictObject({
    x: Coordinate,
    y: Coordinate,
    delta_x: WheelTicks.default(0).meta({
      description: 'Ticks of the wheel: to the right, or to the left if negative.',
    }),
    delta_y: WheelTicks.default(0).meta({ description: 'Ticks of the wheel: down, or up if negative.' }),
    hold_keys: HoldKeys,
  })
  .meta({ id: 'ScrollRequest' })
export type ScrollRequest = z.output<typeof ScrollRequest>

export const DragMouseRequest = z
  .strictObject({
    path: z
      .array(z.array(Coordinate).length(2))
      .min(2)
      .max(maxDragPoints)
      .meta({ description: 'Points `[x, y]`: the button goes down at the first and up at the last.' }),
    button: z.enum(['left', 'middle', 'right']).default('left'),
    delay: Milliseconds.default(0).meta({ description: 'Pause between pressing the button and moving.' }),
    smooth: z.boolean().default(true),
    duration_ms: z.int().min(50).max(10_000).optional().meta({ description: 'Duration of a smooth movement.' }),
    steps_per_segment: z.int().min(1).max(1_000).default(10).meta({ description: 'When `smooth` is false.' }),
    step_delay_ms: Milliseconds.default(50).meta({ description: 'When `smooth` is false.' }),
    hold_keys: HoldKeys,
  })
  .meta({ id: 'DragMouseRequest' })
export type DragMouseRequest = z.output<typeof DragMouseRequest>

export const SetCursorRequest = z.strictObject({ hidden: z.boolean() }).meta({ id: 'SetCursorRequest' })
export type SetCursorRequest = z.output<typeof SetCursorRequest>

const SleepAction = z.strictObject({ duration_ms: z.int().min(0).max(30_000) }).meta({ id: 'SleepAction' })

const ActionType = z.enum([
  ...(['click_mouse', 'move_mouse', 'type_text', 'press_key'] as const),
  ...(['scroll', 'drag_mouse', 'set_cursor', 'sleep'] as const),
])

export const ComputerAction = z
  .strictObject({
    type: ActionType,
    click_mouse: ClickMouseRequest.optional(),
    move_mouse: MoveMouseRequest.optional(),
    type_text: TypeTextRequest.optional(),
    press_key: PressKeyRequest.optional(),
    scroll: ScrollRequest.optional(),
    drag_mouse: DragMouseRequest.optional(),
    set_cursor: SetCursorRequest.optional(),
    sleep: SleepAction.optional(),
  })
  .check((context) => {
    const { type, ...given } = context.value
    const names = Object.keys(given)
    if (names.length === 1 && names[0] === type) return
    const message = 'must have one field besides type, of the same name'
    context.issues.push({ code: 'custom', message, input: context.value })
  })
  .meta({ id: 'ComputerAction', description: 'One action: `type`, and a field of that name with what it needs.' })
export type ComputerAction = z.output<typeof ComputerAction>

const BatchComputerActionRequest = z
  .strictObject({ actions: z.array(ComputerAction).min(1).max(100) })
  .meta({ id: 'BatchComputerActionRequest' })

const ScreenshotRegion = z
  .strictObject({ x: Coordinate, y: Coordinate, width: z.int(), height: z.int() })
  .meta({ id: 'ScreenshotRegion' })
export type ScreenshotRegion = z.output<typeof ScreenshotRegion>

export const clickMouse = defineOperation({
  operationId: 'clickMouse',
  method: 'POST',
  path: '/computer/click_mouse',
  summary: 'Press a mouse button at a point',
  tag,
  category,
  body: ClickMouseRequest,
  status: 200,
  errors,
})

export const moveMouse = defineOperation({
  operationId: 'moveMouse',
  method: 'POST',
  path: '/computer/move_mouse',
  summary: 'Move the pointer',
  tag,
  category,
  body: MoveMouseRequest,
  status: 200,
  errors,
})

export const takeScreenshot = defineOperation({
  operationId: 'takeScreenshot',
  method: 'POST',
  path: '/computer/screenshot',
  summary: 'Take a screenshot',
  tag,
  category,
  body: z.strictObject({ region: ScreenshotRegion.optional() }).meta({ id: 'ScreenshotRequest' }).default({}),
  replyType: 'image/png',
  status: 200,
  errors,
})

export const typeText = defineOperation({
  operationId: 'typeText',
  method: 'POST',
  path: '/computer/type',
  summary: 'Type text',
  tag,
  category,
  body: TypeTextRequest,
  status: 200,
  errors,
})

export const pressKey = defineOperation({
  operationId: 'pressKey',
  method: 'POST',
  path: '/computer/press_key',
  summary: 'Press keys',
  tag,
  category,
  body: PressKeyRequest,
  status: 200,
  errors,
})

export const scroll = defineOperation({
  operationId: 'scroll',
  method: 'POST',
  path: '/computer/scroll',
  summary: 'Turn the mouse wheel at a point',
  tag,
  category,
  body: ScrollRequest,
  status: 200,
  errors,
})

export const dragMouse = defineOperation({
  operationId: 'dragMouse',
  method: 'POST',
  path: '/computer/drag_mouse',
  summary: 'Move the pointer along a path with a button pressed',
  tag,
  category,
  body: DragMouseRequest,
  status: 200,
  errors,
})

export const setCursor = defineOperation({
  operationId: 'setCursor',
  method: 'POST',
  path: '/computer/cursor',
  summary: 'Hide or show the pointer',
  tag,
  category,
  body: SetCursorRequest,
  reply: z.object({ ok: z.boolean() }),
  status: 200,
  errors,
})

export const getMousePosition = defineOperation({
  operationId: 'getMousePosition',
  method: 'POST',
  path: '/computer/get_mouse_position',
  summary: 'Get the position of the pointer',
  tag,
  category,
  reply: z.object({ x: z.int(), y: z.int() }).meta({ id: 'MousePositionResponse' }),
  status: 200,
  errors,
})

export const batchComputerAction = defineOperation({
  operationId: 'batchComputerAction',
  method: 'POST',
  path: '/computer/batch',
  summary: 'Run several actions in order',
  description:
    'No other input is processed in between. The first failure ends the batch. Earlier actions remain in effect.',
  tag,
  category,
  body: BatchComputerActionRequest,
  status: 200,
  errors,
})

export const readClipboard = defineOperation({
  operationId: 'readClipboard',
  method: 'POST',
  path: '/computer/clipboard/read',
  summary: 'Read the text of the clipboard',
  tag,
  category,
  reply: z
    .object({ text: z.string().meta({ description: 'Empty when it holds no text.' }) })
    .meta({ id: 'ClipboardContent' }),
  status: 200,
  errors,
})

export const writeClipboard = defineOperation({
  operationId: 'writeClipboard',
  method: 'POST',
  path: '/computer/clipboard/write',
  summary: 'Write text to the clipboard',
  tag,
  category,
  body: z.strictObject({ text: z.string() }).meta({ id: 'WriteClipboardRequest' }),
  status: 200,
  errors,
})

export const computerOperations = [
  ...[clickMouse, moveMouse, takeScreenshot, typeText, pressKey, scroll, dragMouse],
  ...[setCursor, getMousePosition, batchComputerAction, readClipboard, writeClipboard],
] as const
