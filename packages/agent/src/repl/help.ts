/** The output of `repl.help()`. */
export const helpText = `JavaScript in the Node.js process of this session. Top-level var, let, const, function and class stay for later
calls; await and import() stand at the top. The value of an expression is not returned: write what you want to see.

repl.write(value)   repl.emitImage(bytes, base64 or path)   repl.id   repl.help()   console.log(…)

Everything below is a global, and a member of the frozen object browser. All but drainEvents return promises.

cdp(method, params?, sessionId?)   no session: the tab; null: the browser
drainEvents()   waitForEvent(method, fits?)
gotoUrl(url)   pageInfo()   accessibilitySnapshot()
click(selector or {x, y}, {button?, clickCount?, timeoutSec?})
typeText(text)   fillInput(selector, text, {clearFirst = true, timeoutSec = 10})
pressKey(key, modifiers?)   modifiers: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift; or ['Control']; or {ctrl: true}
scroll(x, y, dy = -300, dx = 0)   dispatchKey(selector, key = 'Enter', event = 'keypress')
captureScreenshot(path = '/tmp/shot.png', fullPage?, maxDim?)   repl.emitImage(path) shows it
listTabs(includeChrome = true)   currentTab()   switchTab(tab)   newTab(url?)   closeTab(tab?)   ensureRealTab()
iframeTarget(urlSubstring)   js(code, {targetId}) works in it
waitMs(1000)   waitForLoad(15)   waitForElement(selector, {state = 'visible', timeoutSec = 10})
waitForNetworkIdle(0.5, 30)
js(expression or function, {arg?, targetId?})   uploadFile(selector, paths)   httpGet(url, headers?, 20)
webmcp.listTools()   webmcp.invokeTool(toolRef, input?, {timeoutSec?})
webmcp.addCustomTools({namespace, source, forceOverwriteNamespace?})   webmcp.listCustomTools()
webmcp.removeCustomTool(id)

import('playwright-core') works too: chromium.connectOverCDP(process.env.CDP_ENDPOINT).
`
