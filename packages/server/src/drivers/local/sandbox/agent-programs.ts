import { join } from 'node:path'
import type { BundledPrograms } from '../../../host/bundles/program-bundle.ts'

const entries = join(import.meta.dirname, '../../../../../agent/src/entries')

/** The programs that machines get, so that they need nothing of berth's own folders. */
export const agentPrograms: BundledPrograms = {
  entries: {
    // The first process of each machine.
    agent: join(entries, 'main.ts'),
    // What the agent starts for its first BiDi client: a megabyte that no start of a session has to read.
    'bidi-mapper': join(entries, 'bidi-mapper.ts'),
    // What runs callers' Playwright code, and the thread beside that code.
    'playwright-process': join(entries, 'playwright-process.ts'),
    'playwright-gate': join(entries, 'playwright-gate.ts'),
    // The Node.js process in which callers define things and find them again.
    'repl-process': join(entries, 'repl-process.ts'),
    // What callers' own tools do outside of pages.
    'custom-tool-process': join(entries, 'custom-tool-process.ts'),
    // What runs the actions of apps.
    'app-process': join(entries, 'app-process.ts'),
    'app-typescript': join(entries, 'app-typescript.ts'),
  },
  // The first is native code: terminals.
  packages: [`@lydell/node-pty-linux-${process.arch}`, 'playwright-core', 'patchright-core'],
  // The same as app-process for Python.
  files: { 'app_process.py': join(entries, 'app_process.py') },
}

/** What installs apps and loads TypeScript, of which machines of apps see the installed folders. */
export const appPackages = ['npm', 'tsx', 'esbuild', `@esbuild/linux-${process.arch}`] as const
