import { constants } from 'node:fs'

const kinds: Readonly<Record<number, string>> = {
  [constants.S_IFDIR]: 'd',
  [constants.S_IFLNK]: 'l',
  [constants.S_IFIFO]: 'p',
  [constants.S_IFSOCK]: 's',
  [constants.S_IFCHR]: 'c',
  [constants.S_IFBLK]: 'b',
}

/** The mode of a file as `ls -l` writes it, without its special bits: `-rw-r--r--`. */
export function modeText(mode: number): string {
  const kind = kinds[mode & constants.S_IFMT] ?? '-'
  const bits = Array.from('rwxrwxrwx', (letter, index) => (mode & (0o400 >> index) ? letter : '-'))
  return `${kind}${bits.join('')}`
}
