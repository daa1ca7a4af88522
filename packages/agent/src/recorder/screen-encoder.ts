import type { RecordRequest } from '@berth/contract/agent/agent-endpoints.ts'

/** The most that a second of the recording takes, whatever the page shows. */
const maxBitsPerSecond = 4_000_000
/** What a crash may lose, and how far a player has to decode before the moment that was sought. */
const secondsPerFragment = 2

interface Size {
  readonly width: number
  readonly height: number
}

const quiet = ['-hide_banner', '-loglevel', 'error']
/** The encoder begins with the first picture, without a look at those that follow. */
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

/** A filter that has nothing to do would still copy every frame. */
function isEven({ width, height }: Size): boolean {
  return even(width) === width && even(height) === height
}

/** H.264 has half as many samples of colour in both directions, so both sizes have to be even. */
function even(pixels: number): number {
  return pixels + (pixels % 2)
}

/** The same for JPEG pictures on its standard input, of any size: they are fitted into one. */
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
    // The times of the frames are those at which they were grabbed: a busy machine makes fewer of them, not a shorter film.
    ...['-fps_mode', 'passthrough', '-enc_time_base', '1:1000'],
    // One thread: others would hold pictures of their own, and take the processor from the page.
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-threads', '1', '-crf', '28'],
    // No frame waits in the encoder for the one after it.
    ...['-tune', 'zerolatency'],
    ...['-maxrate', `${maxBitsPerSecond}`, '-bufsize', `${maxBitsPerSecond * 2}`],
    ...['-g', `${framerate * secondsPerFragment}`, '-force_key_frames', `expr:gte(t,n_forced*${secondsPerFragment})`],
    ...['-movflags', '+frag_keyframe+empty_moov+default_base_moof', '-video_track_timescale', '1000'],
    ...['-flush_packets', '1', '-f', 'mp4', 'pipe:1'],
  ]
}
