/** The policy of the page contains its hash. */
export const style = `
:root { color-scheme: light dark; --page: #f3f4f6; --card: #fff; --text: #16191d; --soft: #555d68; --line: #c5cbd3; --field: #fff; --accent: #0b57d0; --on-accent: #fff; --bad: #b3261e; --bad-back: #fceeed; --good: #146c2e; }
@media (prefers-color-scheme: dark) { :root { --page: #111418; --card: #1b1f24; --text: #e8eaed; --soft: #a6adb7; --line: #454c56; --field: #14171b; --accent: #a8c7fa; --on-accent: #062e6f; --bad: #f2b8b5; --bad-back: #3b1d1b; --good: #81c995; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; min-height: 100dvh; display: flex; justify-content: center; align-items: flex-start; padding: clamp(0rem, 8vh, 6rem) 1rem 2rem; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 27rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: 1rem; overflow-wrap: anywhere; }
main:has(details[open]) { max-width: 60rem; }
main:has(details[open]) form, main:has(details[open]) .choice { max-width: 23rem; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; outline: 0; }
h2 { margin: 0 0 .75rem; font-size: 1rem; font-weight: 600; }
p { margin: 0 0 1rem; }
p:last-child { margin-bottom: 0; }
.lead { font-size: 1.125rem; }
.hint { color: var(--soft); font-size: .875rem; }
.field { margin-bottom: 1.125rem; }
label { display: block; margin-bottom: .375rem; font-weight: 600; font-size: .9375rem; }
.field .hint { margin: .375rem 0 0; }
input { width: 100%; min-height: 3rem; padding: .5rem .875rem; font: inherit; color: inherit; background: var(--field); border: 1px solid var(--soft); border-radius: .625rem; }
input[aria-invalid] { border: 2px solid var(--bad); }
.fault { margin: .375rem 0 0; color: var(--bad); font-size: .875rem; font-weight: 600; }
.fault:empty { display: none; }
.secret { position: relative; }
.secret input { padding-right: 4.75rem; }
button { font: inherit; cursor: pointer; border-radius: .625rem; }
.reveal { position: absolute; inset: .25rem .25rem .25rem auto; min-width: 4rem; border: 0; background: transparent; color: var(--accent); font-size: .875rem; font-weight: 600; }
.primary { width: 100%; min-height: 3rem; margin-top: .375rem; border: 0; background: var(--accent); color: var(--on-accent); font-weight: 650; }
.choice { display: flex; flex-direction: column; width: 100%; min-height: 3rem; justify-content: center; padding: .5rem 1rem; margin-top: .625rem; text-align: start; color: inherit; background: transparent; border: 1px solid var(--line); font-weight: 550; }
.choice .hint { font-weight: 400; }
@media (hover: hover) { .choice:hover { border-color: var(--accent); } .primary:hover { filter: brightness(1.08); } }
.or { display: flex; align-items: center; gap: .75rem; margin: 1.25rem 0 .625rem; color: var(--soft); font-size: .875rem; }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.alert { padding: .75rem 1rem; border-radius: .625rem; background: var(--bad-back); color: var(--bad); font-weight: 550; }
.waiting { display: flex; align-items: center; gap: .75rem; color: var(--soft); }
.waiting::before { content: ""; flex: none; width: 1.25rem; height: 1.25rem; border: 2.5px solid var(--line); border-top-color: var(--accent); border-radius: 50%; animation: turn 1s linear infinite; }
@keyframes turn { to { rotate: 360deg; } }
@media (prefers-reduced-motion: reduce) { .waiting::before { animation-duration: 6s; } }
[data-state='done'] h1::before { content: "\\2713"; color: var(--good); margin-right: .5rem; }
[data-state='failed'] h1::before { content: "\\26A0"; color: var(--bad); margin-right: .5rem; }
details { margin-top: 1.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
summary { cursor: pointer; color: var(--accent); font-weight: 600; font-size: .9375rem; }
iframe { width: 100%; aspect-ratio: 16 / 9; min-height: 16rem; margin-top: .75rem; border: 1px solid var(--line); border-radius: .625rem; background: #202124; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
h1:focus-visible { outline: 0; }
noscript { display: block; }
@media (max-width: 30rem) { body { padding: 0; background: var(--card); } main { border: 0; border-radius: 0; padding: 1.5rem 1.25rem; } }
`
