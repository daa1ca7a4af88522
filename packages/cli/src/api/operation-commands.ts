import type { Endpoint } from '@berth/contract/endpoint.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { isStream } from '@berth/contract/stream.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { printLine } from '../output.ts'
import { ApiClient } from './api-client.ts'
import { ApiFailure } from './api-failure.ts'
import { exampleOf, withExample } from './command-examples.ts'
import { commandGroup } from './command-group.ts'
import { type FieldFlag, operationFlags } from './operation-flags.ts'
import { operationName } from './operation-names.ts'
import { type OutputFormat, printEvent, printReply, saveReply } from './print-reply.ts'
import { type FlagValue, fieldValue, fileOf, formOf, setField, textOf } from './request-body.ts'
import type { ConnectionFlags } from './saved-servers.ts'

/** The flags of every command that sends requests. */
export interface ApiFlags extends ConnectionFlags {
  readonly output: OutputFormat
}

interface OperationOptions extends ApiFlags {
  readonly data?: string
  readonly outputFile?: string
  readonly file?: string
  readonly [flag: string]: unknown
}

export const operations = publicEndpoints.filter(({ deprecated }) => !deprecated)

/** What a command does beyond sending the request and printing the reply. */
export interface OperationExtra {
  /** A flag that requests it. Absent: always, if the output format is for people. */
  readonly flag?: readonly [name: string, description: string]
  readonly run: (reply: unknown, client: ApiClient, output: OutputFormat) => Promise<void> | void
  /** Whether it prints the reply itself. */
  readonly printsReply: boolean
}

export type OperationExtras = Readonly<Record<string, OperationExtra>>

export function addOperationCommands(program: Command, extras: OperationExtras): void {
  for (const endpoint of operations) addOperationCommand(program, endpoint, extras[endpoint.operationId])
}

/** Adds the flags of every command that sends requests. */
export function withApiFlags(command: Command): Command {
  return command
    .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']).default('table'))
    .option('--server <name>', 'a server stored by berth login (default: BERTH_URL, or the current one)')
    .option('--project <id or name>', 'the project (default: BERTH_PROJECT, or the project of the API key)')
}

function addOperationCommand(program: Command, endpoint: Endpoint, extra: OperationExtra | undefined): void {
  const { words, positional } = operationName(endpoint, operations)
  const command = commandGroup(program, words.slice(0, -1)).command(words.at(-1) ?? '')
  command
    .summary(lowerCase(endpoint.summary))
    .description([endpoint.summary, endpoint.description].filter(Boolean).join('. '))
  const params = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  for (const name of params) command.argument(`<${name}>`)
  const flags = operationFlags(endpoint)
  for (const flag of flags) {
    if (!positional.includes(flag.name)) addFlag(command, flag)
    else command.argument(flag.kind === 'list' ? `[${flag.name}...]` : `[${flag.name}]`, flag.description)
  }
  if (endpoint.bodyType === 'application/octet-stream')
    command.requiredOption('--file <path>', 'the content to send; - is standard input')
  else if (endpoint.body && !endpoint.bodyType) {
    command.option(
      '--data <json>',
      'the whole request; @path reads a file, @- standard input. Flags override its fields',
    )
  }
  if (isFile(endpoint)) command.option('-O, --output-file <path>', 'the file for the reply')
  if (extra?.flag) command.option(`--${extra.flag[0]}`, extra.flag[1])
  withExample(withApiFlags(command), exampleOf(endpoint, operations, flags))
  command.action(async (...given: readonly unknown[]) => {
    const values = given.slice(0, params.length + positional.length) as readonly (FlagValue | undefined)[]
    const options = given[values.length] as OperationOptions
    const filled = Object.fromEntries(params.map((name, index) => [name, String(values[index])]))
    const byName = new Map(positional.map((name, index) => [name, values[params.length + index]]))
    const fields = flags.flatMap((flag): (readonly [FieldFlag, FlagValue])[] => {
      const value = byName.get(flag.name) ?? (options[optionKey(flag.name)] as FlagValue | undefined)
      return value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[flag, value]]
    })
    const isAsked = extra?.flag ? options[extra.flag[0]] === true : options.output === 'table'
    await runOperation(endpoint, filled, fields, options, isAsked ? extra : undefined)
  })
}

async function runOperation(
  endpoint: Endpoint,
  params: Readonly<Record<string, string>>,
  fields: readonly (readonly [FieldFlag, FlagValue])[],
  options: OperationOptions,
  extra: OperationExtra | undefined,
): Promise<void> {
  const client = await ApiClient.open(options)
  const query: Record<string, unknown> = {}
  for (const [flag, value] of fields) {
    if (flag.place === 'query') setField(query, flag.path, await fieldValue(flag, value))
  }
  const request = { params, query, body: await bodyOf(endpoint, fields, options) }
  if (isStream(endpoint)) {
    for await (const event of client.follow(endpoint, request)) printEvent(event, options.output)
    return
  }
  const response = await client.send(endpoint, request)
  if (isFile(endpoint)) return saveReply(response, options.outputFile)
  const reply = await client.read(response)
  if (reply !== undefined && !extra?.printsReply) printReply(reply, options.output)
  if (extra) await extra.run(reply, client, options.output)
  else if (reply === undefined && process.stderr.isTTY) printLine('done')
  const next = response.headers.get('x-next-offset')
  if (next && response.headers.get('x-has-more') === 'true') printLine(`more results: --offset ${next}`)
}

async function bodyOf(
  { body, bodyType }: Endpoint,
  fields: readonly (readonly [FieldFlag, FlagValue])[],
  { data, file }: OperationOptions,
): Promise<unknown> {
  if (!body) return undefined
  if (bodyType === 'application/octet-stream') return fileOf(file ?? '-')
  const own = fields.filter(([{ place }]) => place === 'body')
  if (bodyType) return formOf(own)
  const whole = data === undefined ? {} : jsonOf(await textOf(data))
  for (const [flag, value] of own) setField(whole, flag.path, await fieldValue(flag, value))
  return whole
}

/** Matches the other lines of a list of commands. */
function lowerCase(summary: string): string {
  return `${summary.charAt(0).toLowerCase()}${summary.slice(1)}`
}

/** Whether the reply is bytes and not JSON. */
function isFile(endpoint: Endpoint): boolean {
  return endpoint.replyType !== undefined && !isStream(endpoint)
}

function addFlag(command: Command, flag: FieldFlag): void {
  const { name, kind, choices, isRequired, members } = flag
  const description = descriptionOf(flag)
  if (kind === 'boolean') {
    command.addOption(new Option(`--${name}`, description)).addOption(new Option(`--no-${name}`).hideHelp())
    return
  }
  const option = new Option(`--${name} <${placeholders[kind]}>`, description)
  if (choices.length > 0) option.choices([...choices])
  if (kind === 'number') option.argParser(numberOf)
  if (['list', 'pairs', 'parts'].includes(kind)) {
    const collect = (value: string, before: readonly string[] = []) => [...before, value]
    option.argParser(collect)
  }
  if (kind === 'parts') option.description = `${members.map((member) => `${member.name}=…`).join(',')} ${description}`
  // A required field may also come with --data.
  command.addOption(isRequired && kind === 'parts' ? option.makeOptionMandatory() : option)
}

const placeholders = {
  text: 'text',
  number: 'number',
  boolean: '',
  list: 'text',
  pairs: 'name=value',
  json: 'json',
  file: 'path',
  parts: 'fields',
} as const satisfies Record<FieldFlag['kind'], string>

function descriptionOf({ description, isRequired, kind }: FieldFlag): string {
  const repeated = kind === 'list' || kind === 'pairs' || kind === 'parts' ? 'may be repeated' : ''
  return [description.replace(/[.]$/, ''), isRequired ? 'required' : '', repeated].filter(Boolean).join('; ')
}

/** The name that commander gives the value of a flag: `startUrl`. */
function optionKey(name: string): string {
  return name.replaceAll(/-(.)/g, (_dash, letter: string) => letter.toUpperCase())
}

function numberOf(text: string): number {
  const value = Number(text)
  if (text.trim() && Number.isFinite(value)) return value
  throw new InvalidArgumentError('It must be a number.')
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // An error with the same rule is reported below.
  }
  throw new ApiFailure('--data must be a JSON object', 'usage')
}
