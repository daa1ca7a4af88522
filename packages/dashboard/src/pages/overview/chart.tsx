import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'

interface ChartProps {
  readonly title: string
  readonly points: readonly { readonly at: string; readonly count: number }[]
}

const heightPixels = 180

/** Bars over time. Its colours are those of the theme when it is drawn; the text below says the same. */
export function Chart({ title, points }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = frame.current as HTMLDivElement
    const colour = (name: string) => getComputedStyle(element).getPropertyValue(name)
    const data: uPlot.AlignedData = [points.map(({ at }) => Date.parse(at) / 1000), points.map(({ count }) => count)]
    const draw = () => {
      const axis = {
        stroke: colour('--quiet'),
        grid: { stroke: colour('--line') },
        ticks: { stroke: colour('--line') },
      }
      const bars = uPlot.paths.bars?.({ size: [0.7] })
      return new uPlot(
        {
          width: element.clientWidth,
          height: heightPixels,
          legend: { show: false },
          cursor: { show: false },
          scales: { y: { range: (_chart, _least, most) => [0, Math.max(1, most)] } },
          axes: [axis, { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }],
          series: [{}, { fill: colour('--accent'), stroke: colour('--accent'), ...(bars && { paths: bars }) }],
        },
        data,
        element,
      )
    }
    let chart = draw()
    const again = () => {
      chart.destroy()
      chart = draw()
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
  }, [points])
  const most = Math.max(0, ...points.map(({ count }) => count))
  return (
    <figure className="card chart">
      <figcaption>{title}</figcaption>
      <div ref={frame} role="img" aria-label={`${title}: at most ${most}`} />
    </figure>
  )
}
