/** What a page asks with `alert`, `confirm` or `prompt`, or on its way out. It waits for the answer and does nothing else. */
export interface Dialog {
  readonly type: 'alert' | 'confirm' | 'prompt' | 'beforeunload'
  /** Address of the page. */
  readonly url: string
  readonly message: string
  /** What a prompt would be answered with. */
  text: string
  /** The text that a prompt begins with is selected: what is typed takes its place. */
  isSelected: boolean
}
