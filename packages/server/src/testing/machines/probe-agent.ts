import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'

/*
 * Replaces the agent in tests of machines: it responds, returns its configuration, and runs commands for tests that
 * inspect the machine. It only loads Node's own modules, because tests start it often.
 */
const config = readFileSync(process.argv[2] ?? '', 'utf8')

createServer(async (request, response) => {
  switch (request.url) {
    case '/state':
      return response.end('{}')
    case '/config':
      return response.end(config)
    case '/run':
      return response.end(JSON.stringify(await run(await bodyOf<string[]>(request))))
    case '/write':
      return process.stdout.write(await bodyOf<string>(request), () => response.end('{}'))
    default:
      return response.writeHead(404).end()
  }
}).listen({ fd: 3 })

async function bodyOf<Body>(request: IncomingMessage): Promise<Body> {
  return (await json(request)) as Body
}

function run([program = '', ...args]: readonly string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ exitCode: typeof error?.code === 'number' ? error.code : error ? -1 : 0, output: `${stdout}${stderr}` })
    })
  })
}
