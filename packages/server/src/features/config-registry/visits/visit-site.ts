import { setTimeout as pause } from 'node:timers/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { type Configuration, Visit } from '../analysis.ts'
import type { StoredAnalysis } from '../stored-analysis.ts'
import { type AnalysisSession, type AnalysisSessions, isOfSession } from './analysis-sessions.ts'
import { verdictOf } from './judge-runs.ts'
import { openScript } from './page-script.ts'
import { askRobots, type Robots } from './robots.ts'

const loadsOfFailing = 3
const sessionsOfVisit = 2

interface SiteVisitsOptions {
  readonly analysis: StoredAnalysis
  readonly sessions: AnalysisSessions
  readonly signal: AbortSignal
  /** The pause between two visits to the site. */
  readonly pauseMilliseconds: number
}

/** The visits of one analysis, one after another. */
export class SiteVisits {
  readonly #analysis: StoredAnalysis
  readonly #sessions: AnalysisSessions
  readonly #signal: AbortSignal
  readonly #pauseMilliseconds: number
  #robots: Robots | undefined
  #visits = 0

  constructor({ analysis, sessions, signal, pauseMilliseconds }: SiteVisitsOptions) {
    this.#analysis = analysis
    this.#sessions = sessions
    this.#signal = signal
    this.#pauseMilliseconds = pauseMilliseconds
  }

  /** Opens the URL in a new browser. Returns the rule if robots.txt forbids the visit. */
  async visit(configuration: Configuration): Promise<Visit | Exclude<Robots, 'allowed'>> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sessions.use(this.#analysis, configuration, {
          signal: this.#signal,
          work: (session) => this.#visit(session),
        })
      } catch (error) {
        this.#signal.throwIfAborted()
        if (!isOfSession(error)) throw error
        if (attempt === sessionsOfVisit) {
          // A host that cannot start a browser reveals nothing about the site.
          if (error instanceof BerthError && error.code === 'session_start_failed') throw error
          return failed
        }
      }
    }
  }

  async #visit(session: AnalysisSession): Promise<Visit | Exclude<Robots, 'allowed'>> {
    const { url } = this.#analysis
    this.#robots ??= await askRobots(session, url, { signal: this.#signal, pauseMilliseconds: this.#pauseMilliseconds })
    if (this.#robots !== 'allowed') return this.#robots
    for (let load = 1; ; load += 1) {
      if (this.#visits > 0) await pause(this.#pauseMilliseconds * load, undefined, { signal: this.#signal })
      this.#visits += 1
      const visit = await session.run(openScript(url), Visit)
      if (verdictOf(visit) !== 'failing' || load === loadsOfFailing) return visit
    }
  }
}

const failed: Visit = {
  status: null,
  failure: 'SESSION_ENDED',
  isPage: true,
  title: '',
  text: '',
  challenges: [],
  hasPasswordField: false,
  media: 0,
}
