import { between } from './pointer-path.ts'

/** What comes after a sentence, perhaps behind a closing quote or bracket. */
const sentenceEnd = /[.!?…。！？][\s"'”’)\]]*$/u

/** Milliseconds from one key to the next, when a person has typed so far. */
export function typingPause(textSoFar: string): number {
  if (!/\s$/u.test(textSoFar)) return between(50, 120)
  const pause = between(80, 200)
  return sentenceEnd.test(textSoFar) ? pause * 1.5 : pause
}

/** How long a key stays down. */
export function keyHold(): number {
  return between(15, 40)
}

/** How long it takes to see that a key was wrong, or to find the right one. */
export function typoPause(): number {
  return between(120, 260)
}

const rows = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm']

/** A key beside the one of the letter; undefined for what is no letter of the common keyboard. */
export function neighbour(character: string): string | undefined {
  const letter = character.toLowerCase()
  const row = rows.find((keys) => keys.includes(letter))
  if (row === undefined || letter.length !== 1) return undefined
  const index = row.indexOf(letter)
  const [left, right] = [row[index - 1], row[index + 1]]
  const chosen = Math.random() < 0.5 ? (left ?? right) : (right ?? left)
  return character === letter ? chosen : chosen?.toUpperCase()
}
