import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  DockerfileParser,
  type From,
  type Instruction,
  type JSONInstruction,
  type PropertyInstruction,
} from 'dockerfile-ast'

export const dockerfile = 'deploy/docker/Dockerfile'

export interface Stage {
  readonly name: string
  /** The stage or the image that it begins with. */
  readonly base: string
  readonly instructions: readonly Instruction[]
}

/** Reads the stages of the Dockerfile, in its order. */
export async function readStages(): Promise<readonly Stage[]> {
  const text = await readFile(join(import.meta.dirname, '../..', dockerfile), 'utf8')
  const stages: { name: string; base: string; instructions: Instruction[] }[] = []
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    if (instruction.getKeyword() === 'FROM') {
      const from = instruction as From
      stages.push({ name: from.getBuildStage() ?? '', base: from.getImage() ?? '', instructions: [] })
    } else {
      stages.at(-1)?.instructions.push(instruction)
    }
  }
  return stages
}

/** The configuration that the Dockerfile gives to an image, as image archives have it. */
export function configOf({ instructions }: Stage): Record<string, unknown> {
  const one = (keyword: string) => instructions.findLast((instruction) => instruction.getKeyword() === keyword)
  const text = (keyword: string) => one(keyword)?.getArgumentsContent() ?? undefined
  const list = (keyword: string) => {
    const instruction = one(keyword) as JSONInstruction | undefined
    return instruction?.getJSONStrings().map((string) => string.getJSONValue())
  }
  const set = (keyword: string, suffix = '') => {
    const name = text(keyword)
    return name === undefined ? undefined : { [`${name}${suffix}`]: {} }
  }
  return {
    User: text('USER'),
    Env: environmentOf(one('ENV')),
    WorkingDir: text('WORKDIR') ?? '/',
    ExposedPorts: set('EXPOSE', '/tcp'),
    Volumes: set('VOLUME'),
    Entrypoint: list('ENTRYPOINT'),
    Cmd: list('CMD'),
  }
}

function environmentOf(instruction: Instruction | undefined): readonly string[] {
  if (instruction === undefined) return [`PATH=${systemPath}`]
  return (instruction as PropertyInstruction)
    .getProperties()
    .map((property) => `${property.getName()}=${property.getValue()}`)
}

/** What the base image says. */
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
