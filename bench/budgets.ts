import type { Figures } from './figures.ts'
import { screenshotName } from './measurements/browser/computer.ts'
import { evaluateName } from './measurements/browser/evaluate.ts'
import { idleBytesName, latencyName, stillName } from './measurements/browser/live-view.ts'
import { messageDirections, messageName } from './measurements/browser/messages.ts'
import { downloadName, requestsName } from './measurements/browser/network.ts'
import { recordingMemoryName, recordingTimeName } from './measurements/browser/replays.ts'
import { eventRateName, pageWorkName } from './measurements/browser/telemetry.ts'
import { apiRateName } from './measurements/server/api.ts'
import { coldInvokeName, redeployName, runtimeName, warmInvokeName } from './measurements/server/apps.ts'
import { clickName, mcpName, snapshotName } from './measurements/server/mcp.ts'
import { createName } from './measurements/sessions/create.ts'
import { idleBeyondBrowser, idleName } from './measurements/sessions/idle.ts'
import { beyondBrowser, memoryName } from './measurements/sessions/memory.ts'
import { profileName } from './measurements/sessions/profiles.ts'
import { acquireName, readyName, readyWithSettings } from './measurements/sessions/ready.ts'
import { createBesideName, frozenProcessorName, wakeName } from './measurements/sessions/standby.ts'

export interface Verdict {
  readonly budget: string
  readonly service: string
  readonly value: number
  readonly limit: number
  readonly unit: string
  readonly holds: boolean
}

/** Returns the p50 of a figure, or NaN when it was not measured. */
type Lookup = (name: string) => number

interface Budget {
  readonly text: string
  readonly unit: string
  /** `direct` looks up figures of the bare browser in the same run. */
  readonly value: (own: Lookup, direct: Lookup) => number
  readonly limit: number
  /** When absent, the value must be at most the limit. */
  readonly isMinimum?: true
}

const cold = { client: 'raw CDP', atOnce: 1 } as const
const headless = createName({ shape: 'headless', ...cold }, 'created')
const headful = createName({ shape: 'headful', ...cold }, 'created')
const fiveAtOnce = readyName({ shape: 'headless', client: 'raw CDP', atOnce: 5 }, 'first page loaded')
const bareAnswer = createName({ shape: 'headless', ...cold }, 'first CDP answer')

const budgets: readonly Budget[] = [
  {
    text: "create headless, cold, to bare Chromium's first CDP answer",
    unit: 'times',
    value: (own, direct) => own(headless) / direct(bareAnswer),
    limit: 1.5,
  },
  {
    text: 'create headful, cold, more than headless',
    unit: 'ms',
    value: (own) => own(headful) - own(headless),
    limit: 300,
  },
  {
    text: 'create headless, ready',
    unit: 'ms',
    value: (own) => own(readyName({ shape: 'headless', ...cold }, 'created')),
    limit: 10,
  },
  { text: readyWithSettings, unit: 'ms', value: (own) => own(readyWithSettings), limit: 40 },
  ...(['raw CDP', 'Playwright'] as const).map((client): Budget => {
    const name = readyName({ shape: 'headless', client, atOnce: 1 }, 'first page loaded')
    return {
      text: `${name}, to a pool of ready bare Chromiums`,
      unit: 'times',
      value: (own, direct) => own(name) / direct(name),
      limit: 1.4,
    }
  }),
  {
    text: `${fiveAtOnce}, to a pool of ready bare Chromiums`,
    unit: 'times',
    value: (own, direct) => own(fiveAtOnce) / direct(fiveAtOnce),
    limit: 1.5,
  },
  {
    text: `${profileName}, to bare Chromium with the same state`,
    unit: 'times',
    value: (own, direct) => own(profileName) / direct(profileName),
    limit: 1.0,
  },
  { text: acquireName, unit: 'ms', value: (own) => own(acquireName), limit: 10 },
  { text: frozenProcessorName, unit: 'ms of CPU', value: (own) => own(frozenProcessorName), limit: 0 },
  { text: createBesideName, unit: 'ms', value: (own) => own(createBesideName), limit: 15 },
  { text: wakeName, unit: 'ms', value: (own) => own(wakeName), limit: 20 },
  { text: clickName, unit: 'ms', value: (own) => own(clickName), limit: 50 },
  { text: snapshotName, unit: 'ms', value: (own) => own(snapshotName), limit: 100 },
  ...(['@playwright/mcp', 'chrome-devtools-mcp'] as const).map(
    (other): Budget => ({
      text: `mcp: tokens of the answers, to ${other}`,
      unit: 'times',
      value: (own) => own(mcpName('berth', 'tokens')) / own(mcpName(other, 'tokens')),
      limit: 1,
    }),
  ),
  {
    text: 'Runtime.evaluate, p50, to direct',
    unit: 'times',
    value: (own, direct) => own(evaluateName) / direct(evaluateName),
    limit: 1.5,
  },
  ...messageDirections.map((direction): Budget => {
    const name = messageName(10, direction)
    return {
      text: `10 MiB ${direction}, rate to direct`,
      unit: '%',
      value: (own, direct) => (own(name) / direct(name)) * 100,
      limit: 70,
      isMinimum: true,
    }
  }),
  {
    text: `${requestsName}, to direct`,
    unit: 'times',
    value: (own, direct) => own(requestsName) / direct(requestsName),
    limit: 1.2,
  },
  {
    text: `${downloadName}, rate to direct`,
    unit: '%',
    value: (own, direct) => (own(downloadName) / direct(downloadName)) * 100,
    limit: 70,
    isMinimum: true,
  },
  {
    text: 'memory beyond Chromium, headless',
    unit: 'MiB',
    value: (own) => own(memoryName('headless', beyondBrowser)),
    limit: 45,
  },
  {
    text: 'memory beyond Chromium, headful',
    unit: 'MiB',
    value: (own) => own(memoryName('headful', beyondBrowser)),
    limit: 100,
  },
  ...(['headless', 'headful'] as const).map((shape): Budget => {
    // One tick of the kernel's clock: top, ps and process accounting show less as zero.
    const limit = 10
    return {
      text: `10 s idle, ${shape}`,
      unit: 'ms of CPU',
      value: (own) => own(idleName(shape, idleBeyondBrowser)),
      limit,
    }
  }),
  ...(['headless', 'headful'] as const).map((shape): Budget => {
    return { text: screenshotName(shape), unit: 'ms', value: (own) => own(screenshotName(shape)), limit: 60 }
  }),
  ...[['default', 5] as const, ['all', 15] as const].map(([captured, limit]): Budget => {
    return {
      text: `${pageWorkName(captured)}, more than off`,
      unit: '%',
      value: (own) => (own(pageWorkName(captured)) / own(pageWorkName('off')) - 1) * 100,
      limit,
    }
  }),
  { text: eventRateName, unit: 'events/s', value: (own) => own(eventRateName), limit: 5000, isMinimum: true },
  { text: warmInvokeName, unit: 'ms', value: (own) => own(warmInvokeName), limit: 15 },
  {
    text: `${coldInvokeName}, to its runtime alone`,
    unit: 'times',
    value: (own) => own(coldInvokeName) / own(runtimeName),
    limit: 1.5,
  },
  { text: redeployName, unit: 'ms', value: (own) => own(redeployName), limit: 2000 },
  ...(['headful', 'headless'] as const).flatMap((shape): readonly Budget[] => [
    ...(['click', 'key'] as const).map((action): Budget => {
      const name = latencyName(shape, action)
      return { text: name, unit: 'ms', value: (own) => own(name), limit: 100 }
    }),
    { text: stillName(shape), unit: 'ms of CPU', value: (own) => own(stillName(shape)), limit: 1500 },
    { text: idleBytesName(shape), unit: 'bytes', value: (own) => own(idleBytesName(shape)), limit: 0 },
    // Half a core at 25 frames.
    { text: recordingTimeName(shape), unit: 'ms of CPU', value: (own) => own(recordingTimeName(shape)), limit: 400 },
    { text: recordingMemoryName(shape), unit: 'MiB', value: (own) => own(recordingMemoryName(shape)), limit: 60 },
  ]),
  { text: 'reads of a session', unit: 'requests/s', value: (own) => own(apiRateName), limit: 2000, isMinimum: true },
]

/** Compares measurements with the budgets. Figures that were not measured get no verdict. */
export function judge(figures: Figures, direct: string, services: readonly string[]): readonly Verdict[] {
  return services.flatMap((service) => budgets.flatMap((budget) => judgeOne(figures, budget, service, direct) ?? []))
}

function judgeOne(figures: Figures, budget: Budget, service: string, direct: string): Verdict | undefined {
  let isMeasured = true
  const look = (of: string) => (name: string) => {
    const figure = figures.find(of, name)
    isMeasured &&= figure !== undefined
    return figure?.p50 ?? Number.NaN
  }
  const value = budget.value(look(service), look(direct))
  if (!isMeasured) return undefined
  const holds = budget.isMinimum ? value >= budget.limit : value <= budget.limit
  return { budget: budget.text, service, value, limit: budget.limit, unit: budget.unit, holds }
}
