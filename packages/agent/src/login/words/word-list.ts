/** Scripts that separate words by spaces, so that a match within a word can be recognized. */
const spacedScripts = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Common}]+$/u

/** Normalizes spelling: lower case, without accents, single spaces between words. */
export function plainText(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .replace(/[‘’ʼ]/g, "'")
    .replace(/ı/g, 'i')
    .replace(/\s+/g, ' ')
    .trim()
}

/** Words and phrases of one meaning in many languages. */
export class WordList {
  readonly #anywhere: RegExp
  readonly #whole: RegExp

  constructor(lines: readonly string[]) {
    const words = lines.flatMap((line) => line.split('|')).map(plainText)
    const escaped = words
      .filter(Boolean)
      .map((word) => ({ word, pattern: word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') }))
    const spaced = escaped.filter(({ word }) => spacedScripts.test(word)).map(({ pattern }) => pattern)
    const others = escaped.filter(({ word }) => !spacedScripts.test(word)).map(({ pattern }) => pattern)
    const bounded = spaced.length > 0 ? [`(?<![\\p{L}\\p{N}])(?:${spaced.join('|')})(?![\\p{L}\\p{N}])`] : []
    this.#anywhere = new RegExp([...bounded, ...others].join('|'), 'u')
    this.#whole = new RegExp(`^\\P{L}*(?:${[...spaced, ...others].join('|')})\\P{L}*$`, 'u')
  }

  /** Whether the text contains one of them. */
  isIn(text: string): boolean {
    return this.#anywhere.test(plainText(text))
  }

  /** Whether the text is one of them, except for punctuation and digits around it. */
  isAll(text: string): boolean {
    return this.#whole.test(plainText(text))
  }

  /** The position of the first of them in the plain text, or -1. */
  positionIn(plain: string): number {
    return plain.search(this.#anywhere)
  }
}
