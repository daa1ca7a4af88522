import { isMainThread } from 'node:worker_threads'
import { loadTypeScript } from '../apps/typescript-loader.ts'

/*
 * Is imported by the process of an app and, since they take over its options, by the processes and threads that the app
 * starts. These load TypeScript at once; the process of the app may be there before its files.
 */

if (!isMainThread || !process.argv[1]?.endsWith('/app-process.mjs')) await loadTypeScript()
