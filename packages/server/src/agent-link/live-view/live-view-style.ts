/** The policy of the page contains its hash. */
export const style = `
html, body { margin: 0; height: 100%; overflow: hidden; background: #202124; }
#screen { position: fixed; inset: 0; touch-action: none; user-select: none; }
#keyboard { position: fixed; top: 0; left: 0; width: 1px; height: 1px; padding: 0; border: 0; outline: 0; opacity: 0; resize: none; }
#status { position: fixed; top: 50%; left: 50%; translate: -50% -50%; margin: 0; padding: 12px 20px; border-radius: 8px; background: #000c; color: #fff; font: 16px/1.4 system-ui, sans-serif; }
#status:empty { display: none; }
[data-state='ended'] #screen { visibility: hidden; }
#show-keyboard { display: none; position: fixed; right: 12px; bottom: 12px; width: 48px; height: 48px; border: 0; border-radius: 24px; background: #000c; color: #fff; font-size: 24px; }
@media (pointer: coarse) { [data-read-only='false'][data-state='connected'] #show-keyboard { display: block; } }
noscript { position: fixed; inset: auto 0 20% 0; text-align: center; color: #fff; font: 16px/1.4 system-ui, sans-serif; }
`
