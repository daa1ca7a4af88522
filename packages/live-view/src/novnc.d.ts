/** Types of the parts of noVNC that this page uses; it has none of its own. */
declare module '@novnc/novnc' {
  interface Events {
    readonly connect: CustomEvent<object>
    readonly disconnect: CustomEvent<{ readonly clean: boolean }>
    readonly clipboard: CustomEvent<{ readonly text: string }>
  }

  // biome-ignore lint/style/noDefaultExport: noVNC has no other export.
  export default class RFB {
    constructor(target: HTMLElement, channel: WebSocket, options: { readonly shared: boolean })
    scaleViewport: boolean
    focusOnClick: boolean
    viewOnly: boolean
    qualityLevel: number
    background: string
    addEventListener<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): void
    sendKey(keysym: number, code: string, isDown: boolean): void
    clipboardPasteFrom(text: string): void
    disconnect(): void
  }
}
