import { writeImageFiles } from '@berth/server/drivers/kubernetes/in-pod/write-image-files.ts'

/** Puts berth's own programs into the root folder of a machine image: `node scripts/write-image-files.ts ROOT`. */

const [root] = process.argv.slice(2)
if (root === undefined) {
  process.stderr.write('usage: node scripts/write-image-files.ts ROOT\n')
  process.exit(64)
}
await writeImageFiles(root)
