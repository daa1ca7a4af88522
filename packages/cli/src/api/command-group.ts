import type { Command } from 'commander'

/** Finds the group of commands, or adds it. */
export function commandGroup(program: Command, words: readonly string[]): Command {
  let group = program
  for (const word of words) {
    group =
      group.commands.find((command) => command.name() === word) ??
      group.command(word).helpCommand(false).configureHelp({ showGlobalOptions: false })
  }
  return group
}

/** Generates summaries of groups from their commands. */
export function summarizeGroups(groups: readonly Command[]): void {
  for (const group of groups) {
    if (group.commands.length === 0 || group.summary() || group.description()) continue
    group.summary(group.commands.map((command) => command.name()).join(', '))
    summarizeGroups(group.commands)
  }
}
