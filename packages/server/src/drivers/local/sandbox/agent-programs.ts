import { join } from 'node:path'
import type { BundledPrograms } from '../../../host/bundles/program-bundle.ts'

const entries = join(import.meta.dirname, '../../../../../agent/src/entries')

/** The programs for machines, bundled so that machines need none of berth's own folders. */
export const agentPrograms: BundledPrograms = {
  entries: {
    // The first process of each machine.
    agent: join(entries, 'main.ts'),
    // Started for the first BiDi client: a megabyte that the start of a session does not have to read.
    'bidi-mapper': join(entries, 'bidi-mapper.ts'),
    // Run callers' Playwright code, and a thread next to that code.
    'playwright-process': join(entries, 'playwright-process.ts'),
    'playwright-gate': join(entries, 'playwright-gate.ts'),
    // The Node.js process in which callers run JavaScript. It keeps their definitions.
    'repl-process': join(entries, 'repl-process.ts'),
    // Runs the parts of callers' custom tools that are outside of pages.
    'custom-tool-process': join(entries, 'custom-tool-process.ts'),
    // Runs the actions of apps.
    'app-process': join(entries, 'app-process.ts'),
    'app-typescript': join(entries, 'app-typescript.ts'),
  },
  // The first package is native code: terminals.
  packages: [`@lydell/node-pty-linux-${process.arch}`, 'playwright-core', 'patchright-core'],
  // Like app-process, for Python.
  files: { 'app_process.py': join(entries, 'app_process.py') },
}

/** Packages that install apps and load TypeScript. Machines of apps see their installed folders. */
export const appPackages = ['npm', 'tsx', 'esbuild', `@esbuild/linux-${process.arch}`] as const
