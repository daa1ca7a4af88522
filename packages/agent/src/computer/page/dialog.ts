/** An `alert`, `confirm`, `prompt` or `beforeunload` dialog of a page, which stops until the answer. */
export interface Dialog {
  readonly type: 'alert' | 'confirm' | 'prompt' | 'beforeunload'
  /** Address of the page. */
  readonly url: string
  readonly message: string
  /** The current text of a prompt. */
  text: string
  /** The initial text of a prompt is selected, so typing replaces it. */
  isSelected: boolean
}
