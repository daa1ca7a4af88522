import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

/** Programs of every Debian, however small, and shell builtins. */
const essentialPrograms = [
  ...['apt-get', 'bash', 'cat', 'chmod', 'chown', 'cp', 'dpkg', 'dpkg-query', 'du', 'echo', 'env', 'false', 'find'],
  ...['grep', 'head', 'id', 'kill', 'ln', 'ls', 'mkdir', 'mkfifo', 'mknod', 'mount', 'nice', 'perl', 'printf', 'rm'],
  ...[
    'sed',
    'seq',
    'sh',
    'sha256sum',
    'sleep',
    'su',
    'tail',
    'tar',
    'test',
    'touch',
    'true',
    'umount',
    'useradd',
    'wc',
  ],
]
const shellWords = ['cd', 'do', 'done', 'exec', 'exit', 'export', 'for', 'if', 'then', 'else', 'fi', 'read', 'set']
const moreShellWords = ['trap', 'ulimit', 'until', 'wait', 'while']
/**
 * Programs that setup provides otherwise, Docker, without which the tests of compose.yaml are skipped, kubectl, which comes
 * with a cluster, and names that refer to no program on purpose.
 */
const exemptNames = ['docker', 'kubectl', 'node', 'sudo', 'nope', 'nowhere', 'program', 'script']

const listed = new Set([
  ...essentialPrograms,
  ...shellWords,
  ...moreShellWords,
  ...exemptNames,
  ...systemPackages.flatMap(({ programs }) => programs),
])

/** How the product and the tests start programs: here, in a session through its API, and in a machine. */
const calls = [
  /\b(?:execFile|execFileSync|spawn|spawnSync|run|runProgram)\(\s*'(\/?[a-z][\w./-]+)'/gi,
  /\bcommand: '(\/?[\w./-]+)',? args/g,
  /\brunIn\(\w+, '([\w./-]+)'/g,
]
const shellScript = /'-c',\s*(['`])([^'`]+)\1/g

/** Programs that setup does not install, as `name` with the files that call it. */
export function unlistedPrograms(sources: readonly { readonly path: string; readonly text: string }[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const names = new Set([...programsIn(path, text), ...programsOfScripts(text)].filter((name) => !listed.has(name)))
    return [...names].map(
      (name) => `${path}: nothing installs ${name}: name it in system-packages.ts, or do without it`,
    )
  })
}

function programsIn(path: string, text: string): readonly string[] {
  // Other functions of these names do not start programs.
  const patterns = text.includes('node:child_process') ? calls : path.startsWith('e2e/') ? calls.slice(1) : []
  return patterns.flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, program = '']) => program.slice(program.lastIndexOf('/') + 1)),
  )
}

/** The first word of each command. */
function programsOfScripts(text: string): readonly string[] {
  return [...text.matchAll(shellScript)].flatMap(([, , script = '']) =>
    script.split(/[;|&\n(){}]+/).flatMap((command) => /^\s*([a-z][\w.+-]*)(?=\s|$)/.exec(command)?.[1] ?? []),
  )
}
