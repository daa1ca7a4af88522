import assert from 'node:assert/strict'
import { test } from 'node:test'
import { handMovement } from './pointer-path.ts'
import { TypingPace } from './typing-pace.ts'
import { neighbour, typingPause } from './typing-rhythm.ts'

const screen = { width: 1000, height: 800 }

test('a movement ends exactly at its point, stays on the screen and takes the given time', () => {
  for (const [from, to] of [
    [
      { x: 0, y: 0 },
      { x: 999, y: 799 },
    ],
    [
      { x: 999, y: 0 },
      { x: 0, y: 0 },
    ],
    [
      { x: 500, y: 400 },
      { x: 501, y: 400 },
    ],
  ] as const) {
    const steps = handMovement({ from, to, screen, durationMilliseconds: 400 })

    const last = steps.at(-1)
    assert.deepEqual(last, { ...to, atMilliseconds: 400 })
    for (const { x, y } of steps) {
      assert.ok(Number.isInteger(x) && x >= 0 && x < screen.width, `x ${x}`)
      assert.ok(Number.isInteger(y) && y >= 0 && y < screen.height, `y ${y}`)
    }
    const times = steps.map(({ atMilliseconds }) => atMilliseconds)
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
  }
})

test('a movement takes longer over a longer distance, and starts and ends slowly', () => {
  const timeTo = (x: number) =>
    handMovement({ from: { x: 0, y: 0 }, to: { x, y: 0 }, screen }).at(-1)?.atMilliseconds ?? 0
  const steps = handMovement({ from: { x: 0, y: 400 }, to: { x: 900, y: 400 }, screen, durationMilliseconds: 800 })
  const moved = steps.map(({ x }, index) => x - (steps[index - 1]?.x ?? 0))

  assert.ok(timeTo(900) > timeTo(20))
  const middle = moved[Math.floor(moved.length / 2)] ?? 0
  assert.ok((moved[0] ?? 0) < middle && (moved.at(-1) ?? 0) < middle)
  assert.deepEqual(handMovement({ from: { x: 5, y: 5 }, to: { x: 5, y: 5 }, screen }), [])
})

test('types in the rhythm of a person: longer at the ends of words and sentences', () => {
  const within = (soFar: string, low: number, high: number) => {
    for (let round = 0; round < 200; round++) {
      const pause = typingPause(soFar)
      assert.ok(pause >= low && pause <= high, `${pause} after ${soFar}`)
    }
  }

  within('wor', 50, 120)
  within('word ', 80, 200)
  within('end. ', 120, 300)
  within('"end!" ', 120, 300)
})

test('a typo is a neighbouring key in the same case', () => {
  assert.ok(['a', 'd'].includes(neighbour('s') ?? ''))
  assert.ok(['A', 'D'].includes(neighbour('S') ?? ''))
  assert.equal(neighbour('q'), 'w')
  for (const other of [' ', '1', 'é', '日', '😀', '']) assert.equal(neighbour(other), undefined)
})

for (const [what, count, forEachKey, expected] of [
  ['a short text keeps its rhythm', 20, 5, 20 * (100 + 5)],
  ['a long text ends in time', 2_000, 5, 30_000],
  ['a text whose keys alone take longer has no pauses', 2_000, 20, 40_000],
] as const) {
  test(what, () => {
    let now = 0
    const pace = new TypingPace(Array(count).fill({ pause: 70, hold: 30 }), 30_000, () => now)

    for (let key = 0; key < count; key++) {
      const { pause, hold } = pace.next()
      assert.ok(pause >= 0 && pause <= 70 && hold <= 30)
      now += pause + hold + forEachKey
    }

    assert.ok(Math.abs(now - expected) < expected / 100, `${now} is not about ${expected}`)
  })
}
