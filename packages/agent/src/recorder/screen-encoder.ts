import type { RecordRequest } from '@berth/contract/agent/agent-endpoints.ts'

/** The maximum bit rate, whatever the page shows. */
const maxBitsPerSecond = 4_000_000
/** How much a crash may lose, and how far a player has to decode to seek. */
const secondsPerFragment = 2

interface Size {
  readonly width: number
  readonly height: number
}

const quiet = ['-hide_banner', '-loglevel', 'error']
/** Lets the encoder start with the first picture, without probing those that follow. */
const immediate = ['-probesize', '32', '-analyzeduration', '0', '-fpsprobesize', '0']

/** The arguments of ffmpeg for a recording of an X display: fragments of H.264 on its standard output. */
export function displayEncoderArguments(
  { displayName, width, height }: Size & { readonly displayName: string },
  { framerate, max_seconds }: Omit<RecordRequest, 'id'>,
): readonly string[] {
  const size = `${width}x${height}`
  return [
    ...[...quiet, '-nostdin', ...immediate],
    ...['-f', 'x11grab', '-framerate', `${framerate}`, '-video_size', size, '-draw_mouse', '1'],
    ...(max_seconds === undefined ? [] : ['-t', `${max_seconds}`]),
    ...['-i', displayName],
    ...encoderArguments(framerate, isEven({ width, height }) ? [] : [`pad=${even(width)}:${even(height)}`]),
  ]
}

/** A filter without effect would still copy every frame. */
function isEven({ width, height }: Size): boolean {
  return even(width) === width && even(height) === height
}

/** H.264 subsamples colour in both directions, so width and height must be even. */
function even(pixels: number): number {
  return pixels + (pixels % 2)
}

/** As `displayEncoderArguments`, for JPEG pictures of any size on its standard input, which are scaled to fit. */
export function pictureEncoderArguments({ width, height }: Size, framerate: number): readonly string[] {
  const size = `${even(width)}:${even(height)}`
  const fit = [`scale=${size}:force_original_aspect_ratio=decrease`, `pad=${size}:-1:-1`, 'setsar=1']
  return [
    ...[...quiet, ...immediate, '-use_wallclock_as_timestamps', '1', '-f', 'mjpeg', '-i', 'pipe:0'],
    ...encoderArguments(framerate, fit),
  ]
}

function encoderArguments(framerate: number, filters: readonly string[]): readonly string[] {
  return [
    ...['-filter_threads', '1', '-vf', [...filters, 'format=yuv420p'].join(',')],
    // Frames have the times at which they were captured: a busy machine produces fewer of them, not a shorter
    // recording.
    ...['-fps_mode', 'passthrough', '-enc_time_base', '1:1000'],
    // One thread: more would hold further pictures in memory, and take the processor from the page.
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-threads', '1', '-crf', '28'],
    // The encoder does not delay frames.
    ...['-tune', 'zerolatency'],
    ...['-maxrate', `${maxBitsPerSecond}`, '-bufsize', `${maxBitsPerSecond * 2}`],
    ...['-g', `${framerate * secondsPerFragment}`, '-force_key_frames', `expr:gte(t,n_forced*${secondsPerFragment})`],
    ...['-movflags', '+frag_keyframe+empty_moov+default_base_moof', '-video_track_timescale', '1000'],
    ...['-flush_packets', '1', '-f', 'mp4', 'pipe:1'],
  ]
}
