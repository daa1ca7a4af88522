import { isMainThread } from 'node:worker_threads'
import { loadTypeScript } from '../apps/typescript-loader.ts'

/*
 * Imported by the process of an app and, because they inherit its options, by the processes and threads that the app
 * starts. Those load TypeScript immediately; the process of the app may start before its files exist.
 */

if (!isMainThread || !process.argv[1]?.endsWith('/app-process.mjs')) await loadTypeScript()
