import { failure, type HostCheck, ok, type Verdict, warning } from './host-check.ts'
import { findProgram, runProgram } from './program.ts'

interface NeededProgram {
  /** A name, or an absolute path. */
  readonly program: string
  /** The Debian package that contains it. */
  readonly package: string
  readonly versionArgs: readonly string[]
  readonly minimum?: readonly [major: number, minor: number]
  /** Whether `berth serve` cannot start sessions without it. */
  readonly isRequired: boolean
}

export const neededPrograms: readonly NeededProgram[] = [
  // The binary itself: /usr/bin/chromium is a shell script around it that costs 0.2 s.
  { program: '/usr/lib/chromium/chromium', package: 'chromium', versionArgs: ['--version'], isRequired: true },
  { program: 'Xtigervnc', package: 'tigervnc-standalone-server', versionArgs: ['-version'], isRequired: true },
  { program: 'openbox', package: 'openbox', versionArgs: ['--version'], isRequired: true },
  { program: '/usr/bin/chromedriver', package: 'chromium-driver', versionArgs: ['--version'], isRequired: true },
  // 0.7 introduced the size of a tmpfs.
  { program: 'bwrap', package: 'bubblewrap', versionArgs: ['--version'], minimum: [0, 7], isRequired: true },
  { program: 'ip', package: 'iproute2', versionArgs: ['-V'], isRequired: true },
  { program: 'nft', package: 'nftables', versionArgs: ['--version'], isRequired: true },
  { program: '/usr/bin/perl', package: 'perl-base', versionArgs: ['--version'], isRequired: true },
  { program: 'unshare', package: 'util-linux', versionArgs: ['--version'], isRequired: true },
  { program: 'setpriv', package: 'util-linux', versionArgs: ['--version'], isRequired: true },
  { program: 'git', package: 'git', versionArgs: ['--version'], isRequired: false },
  // The templates of the official client require this version.
  { program: '/usr/bin/python3', package: 'python3', versionArgs: ['--version'], minimum: [3, 11], isRequired: false },
  { program: 'ffmpeg', package: 'ffmpeg', versionArgs: ['-version'], isRequired: false },
]

export const programChecks: readonly HostCheck[] = neededPrograms.map((needed) => ({
  name: needed.program.slice(needed.program.lastIndexOf('/') + 1),
  run: async () => {
    const path = await findProgram(needed.program)
    if (path === undefined) return judgeProgram(needed, undefined)
    const { output } = await runProgram(path, needed.versionArgs)
    return judgeProgram(needed, output)
  },
}))

/** Only checks that the program exists, which takes a fraction of the time of running it. */
export const programPresenceChecks: readonly HostCheck[] = neededPrograms
  .filter(({ isRequired }) => isRequired)
  .map((needed) => ({
    name: needed.program,
    run: async () => ((await findProgram(needed.program)) ? ok(needed.program) : judgeProgram(needed, undefined)),
  }))

/** `output` is the program's version message. Undefined when the program is missing. */
export function judgeProgram(needed: NeededProgram, output: string | undefined): Verdict {
  const verdict = needed.isRequired ? failure : warning
  const cure = `apt-get install -y --no-install-recommends ${needed.package}`
  if (output === undefined) return verdict(`${needed.program} is missing`, cure)

  const version = /\d+(\.\d+)+/.exec(output)?.[0]
  if (version === undefined) return verdict(`${needed.program} does not run: ${output.split('\n', 1)[0]}`, cure)
  if (needed.minimum && !isAtLeast(version, needed.minimum)) {
    return verdict(`${needed.program} is ${version}; berth needs ${needed.minimum.join('.')} or newer`, cure)
  }
  return ok(version)
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}
