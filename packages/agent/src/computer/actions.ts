import {
  type ClickMouseRequest,
  type DragMouseRequest,
  type MouseButton,
  type MoveMouseRequest,
  maxTypingSeconds,
  maxTypoChance,
  type PressKeyRequest,
  type ScrollRequest,
  type TypeTextRequest,
} from '@berth/contract/agent/operations/computer-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { between, handMovement, type PathStep, stepMilliseconds } from './human/pointer-path.ts'
import { type Beat, TypingPace } from './human/typing-pace.ts'
import { keyHold, neighbour, typingPause, typoPause } from './human/typing-rhythm.ts'
import { type Key, keyOf, keysNamed } from './keys.ts'
import { pause } from './pause.ts'
import type { Point, Screen, WheelDirection } from './screen.ts'

const clickHoldMilliseconds = [20, 50] as const
/** Two clicks more than half a second apart are not a double click. */
const betweenClicksMilliseconds = [60, 110] as const
const wheelTickMilliseconds = 12

/**
 * Performs actions with mouse and keyboard. An action always releases what it has pressed, except for a mouse button
 * that should stay down.
 */
export class Actions {
  readonly #screen: Screen
  readonly #signal: AbortSignal

  /** Aborting the signal stops an action halfway. */
  constructor(screen: Screen, signal: AbortSignal) {
    this.#screen = screen
    this.#signal = signal
  }

  async click({ x, y, button, click_type, num_clicks, hold_keys }: ClickMouseRequest): Promise<void> {
    const held = allKeys(hold_keys, 'hold_keys')
    await this.#goTo({ x, y }, true)
    await this.#holding(held, async () => {
      if (click_type === 'down') return this.#screen.press(button)
      if (click_type === 'up') return this.#screen.release(button)
      for (let count = 1; count <= Math.max(1, num_clicks); count++) {
        if (count > 1) await this.#pause(between(...betweenClicksMilliseconds))
        await this.#pressing(button, () => this.#pause(between(...clickHoldMilliseconds)))
      }
    })
  }

  async move({ x, y, smooth, duration_ms, hold_keys }: MoveMouseRequest): Promise<void> {
    await this.#holding(allKeys(hold_keys, 'hold_keys'), () => this.#goTo({ x, y }, smooth, duration_ms))
  }

  async scroll({ x, y, delta_x, delta_y, hold_keys }: ScrollRequest): Promise<void> {
    if (delta_x === 0 && delta_y === 0) {
      throw new BerthError('invalid_input', { reason: 'delta_x, delta_y: one of them must not be 0.' })
    }
    const held = allKeys(hold_keys, 'hold_keys')
    await this.#goTo({ x, y }, false)
    await this.#holding(held, async () => {
      await this.#turnWheel(delta_y > 0 ? 'down' : 'up', Math.abs(delta_y))
      await this.#turnWheel(delta_x > 0 ? 'right' : 'left', Math.abs(delta_x))
    })
  }

  async drag(request: DragMouseRequest): Promise<void> {
    const { button, delay, hold_keys } = request
    const path = request.path.map(([x = 0, y = 0]) => ({ x, y }))
    const held = allKeys(hold_keys, 'hold_keys')
    for (const [index, point] of path.entries()) await this.#checkPoint(point, `path.${index}: `)
    const [first, ...others] = path as [Point, ...Point[]]
    await this.#goTo(first, request.smooth)
    await this.#holding(held, () =>
      this.#pressing(button, async () => {
        await this.#pause(delay)
        if (request.smooth) await this.#followByHand(first, others, request.duration_ms)
        else await this.#followInSteps(first, others, request)
      }),
    )
  }

  async press({ keys, duration, hold_keys }: PressKeyRequest): Promise<void> {
    const held = allKeys(hold_keys, 'hold_keys')
    const items = keys.map((name, index) => keysNamed(name, `keys.${index}`))
    await this.#holding(held, async () => {
      if (duration > 0) return this.#holding(unique(items.flat()), () => this.#pause(duration))
      for (const item of items) await this.#holding(item, async () => {})
    })
  }

  async type({ text, delay, smooth, typo_chance }: TypeTextRequest): Promise<void> {
    const isSmooth = smooth ?? delay === undefined
    const strokes = strokesOf(text)
    const typed = isSmooth ? withTypos(strokes, Math.min(typo_chance, maxTypoChance)) : withDelays(strokes, delay ?? 0)
    // A caller that turns smoothing off gets exactly the requested delays.
    const limit = smooth === false ? Number.POSITIVE_INFINITY : maxTypingSeconds * 1000
    const pace = new TypingPace(typed, limit)
    for (const { stroke } of typed) {
      const { pause, hold } = pace.next()
      await this.#pause(pause)
      await this.#strike(stroke, hold)
    }
  }

  async #strike({ text, keys }: Stroke, hold: number): Promise<void> {
    this.#signal.throwIfAborted()
    if (!keys) return this.#screen.insertText(text)
    for (const key of keys) await this.#holding([key], () => this.#pause(hold))
  }

  async #turnWheel(direction: WheelDirection, ticks: number): Promise<void> {
    for (let tick = 0; tick < ticks; tick++) {
      await this.#screen.turnWheel(direction)
      await this.#pause(wheelTickMilliseconds)
    }
  }

  async #goTo(point: Point, isSmooth: boolean, durationMilliseconds?: number): Promise<void> {
    const screen = await this.#checkPoint(point)
    if (isSmooth) {
      const from = await this.#screen.pointer()
      await this.#follow(handMovement({ from, to: point, screen, durationMilliseconds }))
    }
    await this.#screen.moveTo(point)
  }

  async #followByHand(first: Point, others: readonly Point[], duration: number | undefined): Promise<void> {
    const screen = await this.#screen.size()
    const segments = others.map((to, index) => ({ from: others[index - 1] ?? first, to }))
    const total = segments.reduce((sum, { from, to }) => sum + distance(from, to), 0)
    for (const segment of segments) {
      // Each segment gets a share of the time in proportion to its length.
      const share = total === 0 ? 1 / segments.length : distance(segment.from, segment.to) / total
      const durationMilliseconds = duration === undefined ? undefined : duration * share
      await this.#follow(handMovement({ ...segment, screen, durationMilliseconds }))
      await this.#screen.moveTo(segment.to)
    }
  }

  /** On a busy machine late steps are skipped, not made up for. */
  async #follow(steps: readonly PathStep[]): Promise<void> {
    const startedAt = performance.now()
    for (const { atMilliseconds, x, y } of steps) {
      const ahead = startedAt + atMilliseconds - performance.now()
      if (ahead < -stepMilliseconds) continue
      await this.#pause(ahead)
      await this.#screen.moveTo({ x, y })
    }
  }

  async #followInSteps(
    first: Point,
    others: readonly Point[],
    { steps_per_segment: steps, step_delay_ms: stepDelay }: DragMouseRequest,
  ): Promise<void> {
    for (const [index, to] of others.entries()) {
      const from = others[index - 1] ?? first
      for (let step = 1; step <= steps; step++) {
        const part = step / steps
        await this.#screen.moveTo({
          x: Math.round(from.x + (to.x - from.x) * part),
          y: Math.round(from.y + (to.y - from.y) * part),
        })
        await this.#pause(stepDelay)
      }
    }
  }

  /** Holds keys down during the work and always releases them in reverse order. */
  async #holding(keys: readonly Key[], work: () => Promise<void>): Promise<void> {
    const pressed: Key[] = []
    await finallyDo(
      async () => {
        for (const key of keys) {
          this.#signal.throwIfAborted()
          pressed.push(key)
          await this.#screen.pressKey(key)
        }
        await work()
      },
      () => forEachInReverse(pressed, (key) => this.#screen.releaseKey(key)),
    )
  }

  async #pressing(button: MouseButton, work: () => Promise<void>): Promise<void> {
    this.#signal.throwIfAborted()
    await finallyDo(
      async () => {
        await this.#screen.press(button)
        await work()
      },
      () => this.#screen.release(button),
    )
  }

  async #checkPoint({ x, y }: Point, place = ''): Promise<{ readonly width: number; readonly height: number }> {
    const size = await this.#screen.size()
    const fault = x < 0 || x >= size.width ? faultOf('x', x, size.width) : faultOf('y', y, size.height)
    if (fault === undefined) return size
    const reason = `${place}${fault} (the screen is ${size.width}x${size.height}).`
    throw new BerthError('invalid_input', { reason })
  }

  #pause(milliseconds: number): Promise<void> {
    return pause(milliseconds, this.#signal)
  }
}

function faultOf(name: string, value: number, length: number): string | undefined {
  return value >= 0 && value < length ? undefined : `${name}: must be from 0 to ${length - 1}, not ${value}`
}

/** One or more keys that enter a piece of text, or text that has no key. */
interface Stroke {
  readonly text: string
  readonly keys: readonly Key[] | undefined
}

interface TypedStroke extends Beat {
  readonly stroke: Stroke
}

function withDelays(strokes: readonly Stroke[], delay: number): readonly TypedStroke[] {
  return strokes.map((stroke, index) => ({ stroke, pause: index === 0 ? 0 : delay, hold: 0 }))
}

/** Types with the rhythm of a person, who sometimes hits a neighbouring key, notices, and corrects it. */
function withTypos(strokes: readonly Stroke[], chance: number): readonly TypedStroke[] {
  let soFar = ''
  return strokes.flatMap((stroke) => {
    const pause = soFar === '' ? 0 : typingPause(soFar)
    soFar = (soFar + stroke.text).slice(-8)
    const wrong = Math.random() < chance ? neighbour(stroke.text) : undefined
    if (wrong === undefined) return [{ stroke, pause, hold: keyHold() }]
    return [
      { stroke: strokeOf(wrong), pause, hold: keyHold() },
      { stroke: strokeOf('\b'), pause: typoPause(), hold: keyHold() },
      { stroke, pause: typoPause(), hold: keyHold() },
    ]
  })
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Text that a reader sees as one character is entered at once: an emoji may consist of many code points. */
function strokesOf(text: string): readonly Stroke[] {
  return Array.from(graphemes.segment(text.replaceAll('\r\n', '\n')), ({ segment }) => strokeOf(segment))
}

function strokeOf(text: string): Stroke {
  const characters = [...text]
  // Browsers accept no key for characters beyond the first 65,536; people also enter those with an input method.
  if (characters.some((character) => character.length > 1)) return { text, keys: undefined }
  const keys = characters.map((character) => {
    const key = keyOf(character)
    if (key) return key
    const codePoint = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
    throw new BerthError('invalid_input', { reason: `text: no key enters the control character U+${codePoint}.` })
  })
  return { text, keys }
}

function allKeys(names: readonly string[], field: string): readonly Key[] {
  return unique(names.flatMap((name, index) => keysNamed(name, `${field}.${index}`)))
}

function unique(keys: readonly Key[]): readonly Key[] {
  return [...new Map(keys.map((key) => [key.keysym, key])).values()]
}

function distance(from: Point, to: Point): number {
  return Math.hypot(to.x - from.x, to.y - from.y)
}

/** Always cleans up; an error of the work takes precedence. */
async function finallyDo(work: () => Promise<void>, cleanUp: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    await cleanUp().catch(() => {}) // A screen that is gone holds nothing down.
    throw error
  }
  await cleanUp()
}

async function forEachInReverse<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const outcomes: PromiseSettledResult<void>[] = []
  for (const item of items.toReversed()) outcomes.push(...(await Promise.allSettled([work(item)])))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}
