import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

interface Series {
  readonly label: string
  /** A colour of the theme. */
  readonly colour: '--accent' | '--warn' | '--bad' | '--good'
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly title: string
  readonly kind: 'bars' | 'lines'
  readonly times: readonly string[]
  readonly series: readonly Series[]
  readonly textOf?: (value: number) => string
}

const heightPixels = 180
const halfHourSeconds = 1800
const wholeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]

/** Values over time, in the colours of the theme. The label names the maximum of each series. */
export function Chart({ title, kind, times, series, textOf = String }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = frame.current as HTMLDivElement
    let chart = draw(element, { kind, times, series, textOf })
    const again = () => {
      chart.destroy()
      chart = draw(element, { kind, times, series, textOf })
    }
    const resized = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: heightPixels }))
    resized.observe(element)
    const themed = new MutationObserver(again)
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      resized.disconnect()
      themed.disconnect()
      chart.destroy()
    }
  }, [kind, times, series, textOf])
  const most = series.map(({ label, values }) => `${label} at most ${textOf(mostOf(values))}`).join(', ')
  return (
    <figure className="card chart">
      <figcaption>
        {title}
        <span className="legend">
          {series.map(({ label, colour }) => (
            <span key={label}>
              <i className={colour.slice(2)} /> {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={frame} role="img" aria-label={`${title}: ${most}`} />
    </figure>
  )
}

function draw(element: HTMLElement, { kind, times, series, textOf = String }: Omit<ChartProps, 'title'>): uPlot {
  const colourOf = (name: string) => getComputedStyle(element).getPropertyValue(name)
  const axis = {
    stroke: colourOf('--quiet'),
    grid: { stroke: colourOf('--line'), width: 1 },
    ticks: { show: false },
  }
  const bars = kind === 'bars' ? uPlot.paths.bars?.({ size: [0.7] }) : undefined
  const linesOf = ({ colour, label }: Series) => ({
    label,
    stroke: colourOf(colour),
    width: 2,
    // A line around bars would also mark empty hours.
    ...(bars && { width: 0, fill: colourOf(colour), paths: bars, points: { show: false } }),
  })
  return new uPlot(
    {
      width: element.clientWidth,
      height: heightPixels,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        // Draws the first and the last bar completely.
        x: { range: (_chart, first, last) => [first - halfHourSeconds, last + halfHourSeconds] },
        y: { range: (_chart, _least, most) => [0, Math.max(1, most * 1.1)] },
      },
      axes: [
        { ...axis, size: 32, values: hoursOf },
        { ...axis, size: 64, incrs: wholeSteps, values: (_chart, values) => values.map((value) => textOf(value)) },
      ],
      series: [{}, ...series.map(linesOf)],
    },
    [times.map((at) => Date.parse(at) / 1000), ...series.map(({ values }) => [...values])],
    element,
  )
}

/** Local time without a date, because the chart shows the last day. */
function hoursOf(_chart: uPlot, seconds: readonly number[]): string[] {
  return seconds.map((second) => new Date(second * 1000).toLocaleTimeString(undefined, { hour: 'numeric' }))
}

function mostOf(values: readonly (number | null)[]): number {
  return Math.max(0, ...values.map((value) => value ?? 0))
}
