/* Expressions that a page evaluates. They are text, because what they use exists only in pages. */

/** Loads the URLs as images, scripts and frames, by fetch and by beacon. Returns what succeeded. */
export function loadWithEveryApi(urls: readonly string[]): string {
  return `(async (urls) => {
    const load = (name, url) => new Promise((resolve) => {
      const element = document.createElement(name)
      element.onload = () => resolve(name + ' ' + url)
      element.onerror = () => resolve()
      element.src = url
      document.body.append(element)
    })
    // Of an error page too a frame says that it has loaded: whether it led somewhere, the canary knows.
    const frame = (url) => load('iframe', url).then(() => undefined)
    const send = (url, options) => fetch(url, options).then(({ status }) => status === 403 ? undefined : 'fetch ' + url + ' ' + status, () => undefined)
    const work = (url) => new Promise((resolve) => {
      const source = 'fetch(' + JSON.stringify(url) + ').then(({ status }) => postMessage(status), () => postMessage(403))'
      const worker = new Worker(URL.createObjectURL(new Blob([source])))
      worker.onmessage = ({ data }) => resolve(data === 403 ? undefined : 'worker ' + url + ' ' + data)
    })
    const submit = (url) => {
      const name = 'frame ' + document.forms.length
      const form = Object.assign(document.createElement('form'), { action: url, method: 'post', target: name })
      const target = Object.assign(document.createElement('iframe'), { name })
      document.body.append(target, form)
      const done = new Promise((resolve) => { target.onload = () => resolve() })
      form.submit()
      return done
    }
    urls.forEach((url) => navigator.sendBeacon(url, 'x'))
    const ways = urls.flatMap((url) => [load('img', url), load('script', url), frame(url), send(url, {}), send(url, { method: 'POST', body: 'x' }), work(url)])
    const found = await Promise.all(ways)
    for (const url of urls) await submit(url)
    return found.filter(Boolean)
  })(${JSON.stringify(urls)})`
}

/** Returns the URLs of WebSockets that open. */
export function openWebSockets(urls: readonly string[]): string {
  return `Promise.all(${JSON.stringify(urls)}.map((url) => new Promise((resolve) => {
    const socket = new WebSocket(url)
    socket.onopen = () => resolve(url)
    socket.onclose = () => resolve()
  }))).then((urls) => urls.filter(Boolean))`
}

/** Returns the status of the response, or `failed`. */
export function fetchStatus(url: string): string {
  return `fetch(${JSON.stringify(url)}).then(({ status }) => status, () => 'failed')`
}

/** Returns the candidates that WebRTC would send to a peer, using the server for STUN and TURN. */
export function gatherCandidates(server: string): string {
  const iceServers = [
    { urls: `stun:${server}` },
    { urls: [`turn:${server}?transport=udp`, `turn:${server}?transport=tcp`], username: 'u', credential: 'p' },
  ]
  return `(async (iceServers) => {
    const connection = new RTCPeerConnection({ iceServers })
    connection.createDataChannel('x')
    const candidates = []
    const gathered = new Promise((resolve) => {
      connection.onicecandidate = ({ candidate }) => candidate ? candidates.push(candidate.candidate) : resolve()
      setTimeout(resolve, 3000)
    })
    await connection.setLocalDescription(await connection.createOffer())
    await gathered
    const { sdp } = connection.localDescription
    connection.close()
    return { candidates, sdp }
  })(${JSON.stringify(iceServers)})`
}
