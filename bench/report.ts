import type { Verdict } from './budgets.ts'
import type { Figure } from './figures.ts'
import type { BenchReport } from './run-bench.ts'

/** Formats a run as Markdown tables. */
export function asTables({ figures, services, verdicts, surroundings }: BenchReport): string {
  const { date, processors, memoryGiB, kernel, node, loadBefore, loadAfter } = surroundings
  return [
    `${date}, ${processors}, ${memoryGiB} GiB, Linux ${kernel}, Node.js ${node}, load ${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after`,
    table(['budget', 'service', 'measured', 'limit', ''], verdicts.map(verdictRow)),
    figureTable(figures.all, services),
    ...figures.notes.map((note) => `Note: ${note}.`),
    '',
  ].join('\n\n')
}

function verdictRow({ budget, service, value, limit, unit, holds }: Verdict): readonly string[] {
  return [budget, service, `${short(value)} ${unit}`, `${short(limit)} ${unit}`, holds ? 'holds' : 'DOES NOT HOLD']
}

/** One row per name: the first service, then the others with the ratio of their p50. */
function figureTable(all: readonly Figure[], services: readonly string[]): string {
  const [direct, ...others] = services
  const head = [
    'what',
    'unit',
    `${direct}: p50`,
    'p95',
    'p99',
    ...others.flatMap((name) => [`${name}: p50`, 'p95', 'p99', 'ratio']),
  ]
  const rows = [...Map.groupBy(all, ({ name }) => name)].map(([name, figures]) => {
    const of = (service: string | undefined) => figures.find((figure) => figure.service === service)
    const base = of(direct)
    const cells = others.flatMap((service) => [...quantileCells(of(service)), ratioCell(of(service), base)])
    return [name, figures[0]?.unit ?? '', ...quantileCells(base), ...cells]
  })
  return table(head, rows)
}

/** With few samples the highest quantiles are all the maximum, which is shown once. */
function quantileCells(figure: Figure | undefined): readonly string[] {
  if (!figure) return ['', '', '']
  const { samples, p50, p95, p99 } = figure
  return [short(p50), samples > 1 ? short(p95) : '', samples >= 100 ? short(p99) : '']
}

function ratioCell(figure: Figure | undefined, base: Figure | undefined): string {
  return figure && base && base.p50 > 0 ? (figure.p50 / base.p50).toFixed(2) : ''
}

function short(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)))
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n')
}

/** The complete result for programs. */
export function asJson({ figures, verdicts, surroundings }: BenchReport): string {
  return `${JSON.stringify({ ...surroundings, budgets: verdicts, figures: figures.all, notes: figures.notes })}\n`
}
