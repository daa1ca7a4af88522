import { between } from './pointer-path.ts'

/** The end of a sentence, perhaps followed by a closing quote or bracket. */
const sentenceEnd = /[.!?…。！？][\s"'”’)\]]*$/u

/** Milliseconds to the next key after a person has typed this text. */
export function typingPause(textSoFar: string): number {
  if (!/\s$/u.test(textSoFar)) return between(50, 120)
  const pause = between(80, 200)
  return sentenceEnd.test(textSoFar) ? pause * 1.5 : pause
}

/** How long a key stays down. */
export function keyHold(): number {
  return between(15, 40)
}

/** How long it takes to notice a wrong key, or to find the right one. */
export function typoPause(): number {
  return between(120, 260)
}

const rows = ['qwertyuiop', 'asdfghjkl', 'zxcvbnm']

/** A key next to the one of the letter; undefined for characters that are not letters of the common keyboard. */
export function neighbour(character: string): string | undefined {
  const letter = character.toLowerCase()
  const row = rows.find((keys) => keys.includes(letter))
  if (row === undefined || letter.length !== 1) return undefined
  const index = row.indexOf(letter)
  const [left, right] = [row[index - 1], row[index + 1]]
  const chosen = Math.random() < 0.5 ? (left ?? right) : (right ?? left)
  return character === letter ? chosen : chosen?.toUpperCase()
}
