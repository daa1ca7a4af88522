import { writeFile } from 'node:fs/promises'

/** More than any part of the browser asks for itself, and far more than the agent. */
const score = 900

/** When memory runs out, the kernel is to end what a caller has started before it ends the browser, or the agent. */
export function exposeToMemoryKiller(pid: number): void {
  writeFile(`/proc/${pid}/oom_score_adj`, String(score)).catch(() => {}) // It has ended already.
}
