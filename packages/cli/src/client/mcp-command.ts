import { join } from 'node:path'
import type { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { ApiFailure } from '../api/api-failure.ts'
import { withExample } from '../api/command-examples.ts'
import { type ConnectionFlags, findConnection } from '../api/saved-servers.ts'

/** Beside the installed program, or in the checkout. */
const docsFolder = join(import.meta.dirname, '../../../../docs')

export function addMcpCommand(program: Command): void {
  const command = program
    .command('mcp')
    .summary('serve MCP on standard input and output')
    .description(
      'For agents that start their MCP servers as programs. Others use /mcp of the berth. BERTH_MCP_DISABLED_TOOLSETS ' +
        'leaves tools out.',
    )
    .option('--server <name>', 'a server stored by berth login (default: BERTH_URL, or the current one)')
    .option('--project <id or name>', 'the only project that tools may use')
    .action(serveMcp)
  withExample(command, 'mcp --server staging')
}

async function serveMcp(flags: ConnectionFlags): Promise<void> {
  const [{ StdioServerTransport }, { createMcpServer, checkConnection }, { DocsSearch }, { parseToolsets }] =
    await Promise.all([
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('@berth/mcp/create-mcp-server.ts'),
      import('@berth/mcp/docs-search.ts'),
      import('@berth/mcp/toolsets.ts'),
    ])
  const { url, apiKey, project } = await findConnection(flags)
  if (!apiKey) throw new ApiFailure('there is no API key: berth login stores one, or set BERTH_API_KEY', 'permission')
  const connection = { url, apiKey, project }
  await checkConnection(connection)
  let disabled: ReturnType<typeof parseToolsets>
  try {
    disabled = parseToolsets(process.env.BERTH_MCP_DISABLED_TOOLSETS ?? '')
  } catch (error) {
    throw new ApiFailure(`BERTH_MCP_DISABLED_TOOLSETS: ${(error as Error).message}`, 'usage')
  }
  const server = createMcpServer({
    ...connection,
    version: packageJson.version,
    docs: new DocsSearch(docsFolder),
    disabled,
  })
  await server.connect(new StdioServerTransport())
  await new Promise<void>((resolve) => {
    server.onclose = resolve
    process.stdin.once('end', resolve)
  })
  await server.close()
}
