import type { Command } from 'commander'
import { withExample } from '../api/command-examples.ts'

/** An example for each command of the host. */
const examples = [
  'serve --port 8080 --data-dir /var/lib/berth',
  'setup',
  'doctor --json',
  'org create acme',
  'org list',
  'keys create ci',
  'keys list',
  'keys revoke KEY_ID',
  'test e2e/session',
  'check --fix',
  'bench',
]

/** Adds the examples to the help texts. */
export function showHostExamples(program: Command): void {
  for (const example of examples) {
    let command: Command | undefined = program
    for (const word of example.split(' ')) {
      const next: Command | undefined = command.commands.find((each) => each.name() === word)
      if (!next) break
      command = next
    }
    if (command !== program) withExample(command, example)
  }
}
