import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unlistedPrograms } from './called-programs.ts'

const calls: Readonly<Record<string, string>> = {
  'starts a process': "import { execFile } from 'node:child_process'\nexecFile('/usr/bin/xdotool', ['key'])",
  'has a session start one': "await exec(id, { command: 'xdotool', args: [] })",
  'has a machine start one': "await runIn(machine, '/usr/bin/xdotool', 'key')",
  'has a shell start one': "spawn(['-c', 'echo $DISPLAY; xdotool getdisplaygeometry'])",
}

for (const [kind, text] of Object.entries(calls)) {
  test(`a program that nothing installs is found where a test ${kind}`, () => {
    const [found = '', ...others] = unlistedPrograms([{ path: 'e2e/some.test.ts', text }])

    assert.match(found, /^e2e\/some\.test\.ts: nothing installs xdotool:/)
    assert.deepEqual(others, [])
  })
}

test('programs of the list, and those of every system, are accepted', () => {
  const text = "import { spawn } from 'node:child_process'\nspawn('xclip')\nspawn('sh', ['-c', 'cd /tmp && tar -x'])"

  assert.deepEqual(unlistedPrograms([{ path: 'e2e/some.test.ts', text }]), [])
})
