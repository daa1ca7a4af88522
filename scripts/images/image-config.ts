import { configOf, readStages } from './dockerfile.ts'

/** Prints the configuration of an image, from the Dockerfile: `node scripts/images/image-config.ts TARGET`. */

const [target] = process.argv.slice(2)
const stage = (await readStages()).find(({ name }) => name === target)
if (stage === undefined) {
  process.stderr.write('usage: node scripts/images/image-config.ts TARGET, a stage of the Dockerfile\n')
  process.exit(64)
}
process.stdout.write(`${JSON.stringify(configOf(stage))}\n`)
