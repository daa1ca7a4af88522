import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { summarizeGroups } from '../api/command-group.ts'
import { addOperationCommands } from '../api/operation-commands.ts'
import { addAppCommands } from './app-commands.ts'
import { addCopyCommand } from './copy-command.ts'
import { addLoginCommands } from './login-command.ts'
import { addMcpCommand } from './mcp-command.ts'
import { operationExtras } from './operation-extras.ts'
import { addShellCommand } from './shell-command.ts'

/** Adds the commands that work against any berth, over its API. */
export function addClientCommands(program: Command): void {
  program.commandsGroup('Against any berth:')
  addLoginCommands(program)
  addAppCommands(program)
  addOperationCommands(program, operationExtras)
  addShellCommand(program)
  addCopyCommand(program)
  addMcpCommand(program)
  summarizeGroups(program.commands)
  tab(program)
}
