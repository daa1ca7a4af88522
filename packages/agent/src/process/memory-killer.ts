import { writeFileSync } from 'node:fs'

/** Above the value of all parts of the browser, and far above that of the agent. */
const score = 900

/**
 * When memory runs out, the kernel should kill processes of callers before the browser or the agent. Synchronous, because
 * processes that it has started before would not inherit it.
 */
export function exposeToMemoryKiller(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, String(score))
  } catch {
    // It has ended already.
  }
}
