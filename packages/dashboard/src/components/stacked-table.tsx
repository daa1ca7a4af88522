import type { ReactNode } from 'react'

interface StackedTableProps {
  readonly label: string
  readonly columns: readonly string[]
  /** The rows. Each cell repeats the title of its column in `data-title`, for phones. */
  readonly children: ReactNode
}

/** A table that scrolls in its own frame, and whose rows become cards on phones. */
export function StackedTable({ label, columns, children }: StackedTableProps) {
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label={label}>
      <table className="stacks">
        <thead>
          <tr>
            {columns.map((title) => (
              <th key={title}>{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
