import { execFileSync } from 'node:child_process'

const fragment = '+frag_keyframe+empty_moov+default_base_moof'

/** A recording as an agent sends it: fragments of two seconds, of a picture that changes. */
export function makeRecording(seconds: number): Buffer {
  const source = ['-f', 'lavfi', '-i', `testsrc=size=64x48:rate=10:duration=${seconds}`]
  const encoder = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '20', '-threads', '1']
  const container = ['-movflags', fragment, '-video_track_timescale', '1000', '-f', 'mp4', '-']
  return execFileSync('ffmpeg', ['-v', 'error', ...source, ...encoder, ...container], { maxBuffer: 64 * 1024 * 1024 })
}

/** What ffprobe says of a file: its duration in seconds, and how many frames it has. */
export function probe(content: Uint8Array): { readonly seconds: number; readonly frames: number } {
  const entries = ['-count_frames', '-show_entries', 'format=duration:stream=nb_read_frames', '-of', 'json']
  const text = execFileSync('ffprobe', ['-v', 'error', ...entries, '-i', 'pipe:0'], { input: content }).toString()
  const { format, streams } = JSON.parse(text)
  return { seconds: Number(format.duration), frames: Number(streams[0].nb_read_frames) }
}
