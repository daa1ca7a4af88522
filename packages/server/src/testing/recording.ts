import { execFileSync } from 'node:child_process'

const fragment = '+frag_keyframe+empty_moov+default_base_moof'

/** A recording in the form that an agent sends: fragments of two seconds of a changing picture. */
export function makeRecording(seconds: number): Buffer {
  const source = ['-f', 'lavfi', '-i', `testsrc=size=64x48:rate=10:duration=${seconds}`]
  const encoder = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '20', '-threads', '1']
  const container = ['-movflags', fragment, '-video_track_timescale', '1000', '-f', 'mp4', '-']
  return execFileSync('ffmpeg', ['-v', 'error', ...source, ...encoder, ...container], { maxBuffer: 64 * 1024 * 1024 })
}

/** The duration of a file in seconds and its number of frames, according to ffprobe. */
export function probe(content: Uint8Array): { readonly seconds: number; readonly frames: number } {
  const entries = ['-count_frames', '-show_entries', 'format=duration:stream=nb_read_frames', '-of', 'json']
  const text = execFileSync('ffprobe', ['-v', 'error', ...entries, '-i', 'pipe:0'], { input: content }).toString()
  const { format, streams } = JSON.parse(text)
  return { seconds: Number(format.duration), frames: Number(streams[0].nb_read_frames) }
}
