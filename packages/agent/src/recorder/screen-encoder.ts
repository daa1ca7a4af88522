import type { RecordRequest } from '@berth/contract/agent/agent-endpoints.ts'

/** The most that a second of the recording takes, whatever the page shows. */
const maxBitsPerSecond = 4_000_000
/** What a crash may lose, and how far a player has to decode before the moment that was sought. */
const secondsPerFragment = 2

interface ScreenSource {
  readonly displayName: string
  readonly width: number
  readonly height: number
}

/** The arguments of ffmpeg for a recording of an X display: fragments of H.264 on its standard output. */
export function displayEncoderArguments(
  { displayName, width, height }: ScreenSource,
  { framerate, max_seconds }: Omit<RecordRequest, 'id'>,
): readonly string[] {
  return [
    ...['-hide_banner', '-loglevel', 'error', '-nostdin'],
    ...['-probesize', '32', '-analyzeduration', '0'],
    ...['-f', 'x11grab', '-framerate', `${framerate}`, '-video_size', `${width}x${height}`, '-draw_mouse', '1'],
    ...(max_seconds === undefined ? [] : ['-t', `${max_seconds}`]),
    ...['-i', displayName],
    ...encoderArguments(framerate),
  ]
}

function encoderArguments(framerate: number): readonly string[] {
  return [
    // H.264 has half as many samples of colour in both directions, so both sizes have to be even.
    ...['-filter_threads', '1', '-vf', 'pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p'],
    // The times of the frames are those at which they were grabbed: a busy machine makes fewer of them, not a shorter film.
    ...['-fps_mode', 'passthrough', '-enc_time_base', '1:1000'],
    // One thread: others would hold pictures of their own, and take the processor from the page.
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-threads', '1', '-crf', '28'],
    ...['-maxrate', `${maxBitsPerSecond}`, '-bufsize', `${maxBitsPerSecond * 2}`],
    ...['-g', `${framerate * secondsPerFragment}`, '-force_key_frames', `expr:gte(t,n_forced*${secondsPerFragment})`],
    ...['-movflags', '+frag_keyframe+empty_moov+default_base_moof', '-video_track_timescale', '1000'],
    ...['-flush_packets', '1', '-f', 'mp4', 'pipe:1'],
  ]
}
