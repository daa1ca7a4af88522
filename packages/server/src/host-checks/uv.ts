import { join } from 'node:path'

export const uvVersion = '0.13.8'

/** A virtual environment of the checkout, created by setup. Each version has its own folder. */
export const uvFolder = join(import.meta.dirname, `../../../../.tools/uv-${uvVersion}`)

/** Installs Python apps. */
export const uvProgram = join(uvFolder, 'bin/uv')

/** The system's Python, which runs apps and has the settings of the operator's pip. */
export const uvPython = join(uvFolder, 'bin/python3')
