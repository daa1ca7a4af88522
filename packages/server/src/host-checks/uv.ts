import { join } from 'node:path'

export const uvVersion = '0.13.8'

/** A virtual environment of the checkout, which setup makes. Versions have folders of their own. */
export const uvFolder = join(import.meta.dirname, `../../../../.tools/uv-${uvVersion}`)

/** What installs Python apps. */
export const uvProgram = join(uvFolder, 'bin/uv')

/** The Python of the system, which runs apps and has the settings of the operator's pip. */
export const uvPython = join(uvFolder, 'bin/python3')
