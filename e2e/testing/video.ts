import { execFile } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const limitMilliseconds = 60_000

export interface Video {
  readonly codec: string
  readonly pixelFormat: string
  readonly width: number
  readonly height: number
  readonly seconds: number
  /** The longest time between two frames. */
  readonly longestFrameSeconds: number
  /** How many decoded frames differ from the previous one. */
  readonly differentFrames: number
  /** The average brightness of the last frame, from 16 to 235. */
  readonly brightness: number
}

/** Reads a whole video and decodes every frame. Rejects if any part is damaged. */
export async function readVideo(content: Uint8Array): Promise<Video> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-video-'))
  const path = join(folder.path, 'video.mp4')
  await writeFile(path, content)
  const options = { timeout: limitMilliseconds, maxBuffer: 64 * 1024 * 1024 }
  const entries = 'stream=codec_name,pix_fmt,width,height:format=duration'
  const described = await run('ffprobe', ['-v', 'error', '-show_entries', entries, '-of', 'json', path], options)
  const checks = ['-v', 'error', '-xerror', '-i', path, '-fps_mode', 'passthrough']
  const decoded = await run('ffmpeg', [...checks, '-f', 'framemd5', '-'], options)
  const last = ['-v', 'error', '-sseof', '-1', '-i', path, '-vf', 'scale=1:1,format=gray', '-f', 'rawvideo', '-']
  const pixels = await run('ffmpeg', last, { ...options, encoding: 'buffer' })
  const warnings = [described.stderr, decoded.stderr].join('').trim()
  if (warnings) throw new Error(`the video is damaged: ${warnings}`)
  const { streams, format } = JSON.parse(described.stdout)
  const [{ codec_name: codec, pix_fmt: pixelFormat, width, height }] = streams
  const brightness = pixels.stdout.at(-1) ?? 0
  return {
    codec,
    pixelFormat,
    width,
    height,
    seconds: Number(format.duration),
    ...readFrames(decoded.stdout),
    brightness,
  }
}

/** Parses lines of ffmpeg's `framemd5`: stream, decoding time, display time, duration, size, hash. */
function readFrames(text: string): Pick<Video, 'differentFrames' | 'longestFrameSeconds'> {
  const [, unit = '1', unitsPerSecond = '1'] = /^#tb 0: (\d+)\/(\d+)$/m.exec(text) ?? []
  const frames = text.split('\n').filter((line) => line.startsWith('0,'))
  const cells = frames.map((line) => line.split(',').map((cell) => cell.trim()))
  const hashes = cells.map((cell) => cell.at(-1))
  const times = cells.map((cell) => (Number(cell[2]) * Number(unit)) / Number(unitsPerSecond))
  return {
    differentFrames: hashes.filter((hash, index) => hash !== hashes[index - 1]).length,
    longestFrameSeconds: Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? 0))),
  }
}
