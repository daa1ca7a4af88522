import { type FormEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react'
import type { z } from 'zod'
import { ApiError } from '../api/client.ts'
import { common } from '../strings/common.ts'
import { words } from '../strings/form.ts'
import { type Field, fieldsOf, type Member, requestOf } from './schema-fields.ts'

const acronyms = ['url', 'gpu', 'id', 'ip', 'ca', 'os', 'asn', 'totp', 'sso', 'otlp', 'cdp', 'ttl', 'arn', 'kms']

interface SchemaFormProps {
  /** An object schema of the contract. It determines the fields, and validates as the server does. */
  readonly schema: z.ZodType
  readonly initial?: Readonly<Record<string, unknown>>
  readonly submitLabel: string
  readonly isBusy: boolean
  readonly error: Error | null
  readonly onSubmit: (value: unknown) => void
  readonly onClose: () => void
  /** Shown below the fields, computed from their values. */
  readonly preview?: (value: unknown) => ReactNode
}

type Faults = ReadonlyMap<string, string>
type Values = Readonly<Record<string, unknown>>

/** A form for any request of the contract. Each error is shown at its field. */
export function SchemaForm(props: SchemaFormProps) {
  const { schema, initial = {}, submitLabel, isBusy, error, onSubmit, onClose, preview } = props
  const members = useMemo(() => fieldsOf(schema), [schema])
  const [first] = useState<Values>(initial)
  const [value, setValue] = useState<Values>(initial)
  const [faults, setFaults] = useState<Faults>(new Map())
  const [attempts, setAttempts] = useState(0)
  const request = requestOf({ schema, members }, value, first)
  const refused = error ? faultOf(error, members) : undefined
  const shown = refused?.field ? new Map([...faults, [refused.field, refused.message]]) : faults

  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = faultsOf(schema, request)
    setFaults(found)
    setAttempts(attempts + 1)
    if (found.size === 0) onSubmit(request)
  }
  const form = useRef<HTMLFormElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: correcting an error must not move the focus.
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [attempts, error])
  const change = (next: Values) => {
    setValue(next)
    // Errors are shown only after the first attempt, and disappear once corrected.
    if (faults.size > 0) setFaults(faultsOf(schema, requestOf({ schema, members }, next, first)))
  }
  return (
    <form ref={form} onSubmit={submit} noValidate>
      <Members members={members} path="" value={value} faults={shown} onChange={change} />
      {shown.get('') && (
        <p className="notice bad" role="alert">
          {shown.get('')}
        </p>
      )}
      {refused && !refused.field && (
        <p className="notice bad" role="alert">
          {refused.message}
        </p>
      )}
      {preview?.(request)}
      <footer>
        <button type="button" onClick={onClose}>
          {common.cancel}
        </button>
        <button type="submit" className="primary" disabled={isBusy}>
          {submitLabel}
        </button>
      </footer>
    </form>
  )
}

/** The first error of each field, by its path. */
function faultsOf(schema: z.ZodType, request: unknown): Faults {
  const issues = schema.safeParse(request).error?.issues ?? []
  return new Map(issues.map(({ path, message }) => [path.join('.'), message] as const).toReversed())
}

/** The server names the field at the beginning of its message. */
function faultOf(error: Error, members: readonly Member[]): { readonly field?: string; readonly message: string } {
  const [, field = '', message = ''] = /^([\w.]+): (.*)$/s.exec(error.message) ?? []
  const isKnown = error instanceof ApiError && members.some(({ name }) => name === field.split('.')[0])
  return isKnown ? { field, message } : { message: error.message }
}

interface MembersProps {
  readonly members: readonly Member[]
  readonly path: string
  readonly value: Values
  readonly faults: Faults
  readonly onChange: (value: Values) => void
}

function Members({ members, path, value, faults, onChange }: MembersProps) {
  return (
    <div className="fields">
      {members.map((member) => (
        <MemberField
          key={member.name}
          member={member}
          path={path === '' ? member.name : `${path}.${member.name}`}
          value={value[member.name]}
          faults={faults}
          onChange={(next) => onChange({ ...value, [member.name]: next })}
        />
      ))}
    </div>
  )
}

interface MemberFieldProps {
  readonly member: Member
  readonly path: string
  readonly value: unknown
  readonly faults: Faults
  readonly onChange: (value: unknown) => void
}

function MemberField({ member, path, value, faults, onChange }: MemberFieldProps) {
  const { name, field, isRequired, description } = member
  const id = useId()
  const isAt = (fault: string) => fault === path || (field.kind !== 'group' && fault.startsWith(`${path}.`))
  const fault = [...faults].find(([at]) => isAt(at))?.[1]
  const below = [...faults.keys()].some((at) => at.startsWith(`${path}.`))
  // Descriptions are Markdown.
  const note = [description, hintOf(field)].filter(Boolean).join(' ').replaceAll('`', '')
  const about = { id, describedBy: `${id}-note`, isInvalid: fault !== undefined }
  if (field.kind === 'group') {
    return (
      <details className="group" open={below || fault !== undefined || value !== undefined}>
        <summary>{labelOf(name)}</summary>
        {note && <p className="hint">{note}</p>}
        {fault && <p className="fault">{fault}</p>}
        <Members
          members={field.members}
          path={path}
          value={(value ?? {}) as Values}
          faults={faults}
          onChange={onChange}
        />
      </details>
    )
  }
  return (
    <div className={`field ${classOf(field)}`}>
      <label htmlFor={id}>
        {labelOf(name)} {isRequired && <span className="quiet">{words.required}</span>}
      </label>
      <Input field={field} value={value} about={about} onChange={onChange} />
      <p className={fault ? 'fault' : 'hint'} id={about.describedBy}>
        {fault ?? note}
      </p>
    </div>
  )
}

/** Short fields are shown side by side. */
function classOf(field: Field): string {
  if (field.kind === 'flag' && field.initial !== undefined) return 'flag'
  const isShort = field.kind === 'flag' || field.kind === 'choice' || field.kind === 'number'
  return isShort || (field.kind === 'text' && !field.isLong) ? '' : 'whole'
}

interface InputProps {
  readonly field: Exclude<Field, { kind: 'group' }>
  readonly value: unknown
  readonly about: { readonly id: string; readonly describedBy: string; readonly isInvalid: boolean }
  readonly onChange: (value: unknown) => void
}

function Input({ field, value, about, onChange }: InputProps) {
  const shared = { id: about.id, 'aria-describedby': about.describedBy, 'aria-invalid': about.isInvalid }
  switch (field.kind) {
    case 'flag':
      return field.initial === undefined ? (
        <select {...shared} value={String(value ?? '')} onChange={({ target }) => onChange(flagOf(target.value))}>
          <option value="">{words.standard}</option>
          <option value="true">{words.yes}</option>
          <option value="false">{words.no}</option>
        </select>
      ) : (
        <input
          {...shared}
          type="checkbox"
          checked={Boolean(value ?? field.initial)}
          onChange={({ target }) => onChange(target.checked === field.initial ? undefined : target.checked)}
        />
      )
    case 'choice':
      return (
        <select {...shared} value={String(value ?? '')} onChange={({ target }) => onChange(target.value)}>
          <option value="">{field.initial === undefined ? common.none : `${words.standard}: ${field.initial}`}</option>
          {field.options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )
    case 'number':
      return (
        <input
          {...shared}
          inputMode="numeric"
          placeholder={String(field.initial ?? '')}
          value={String(value ?? '')}
          onChange={({ target }) => onChange(numberOf(target.value))}
        />
      )
    case 'text':
      return field.isLong ? (
        <textarea {...shared} value={String(value ?? '')} onChange={({ target }) => onChange(target.value)} />
      ) : (
        <input
          {...shared}
          type={field.isSecret ? 'password' : 'text'}
          autoComplete="off"
          placeholder={String(field.initial ?? '')}
          value={String(value ?? '')}
          onChange={({ target }) => onChange(target.value)}
        />
      )
    case 'file':
      return <input {...shared} type="file" className="file" onChange={({ target }) => onChange(target.files?.[0])} />
    default:
      return <ParsedText field={field} value={value} shared={shared} onChange={onChange} />
  }
}

interface ParsedTextProps extends Pick<InputProps, 'value' | 'onChange'> {
  readonly field: { readonly kind: 'lines' | 'pairs' | 'json' }
  readonly shared: object
}

/** A value entered as text: the text is kept as typed. */
function ParsedText({ field: { kind }, value, shared, onChange }: ParsedTextProps) {
  const [text, setText] = useState(() => textOf(kind, value))
  return (
    <textarea
      {...shared}
      className={kind === 'json' ? 'code' : ''}
      spellCheck={false}
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        onChange(parsed(kind, target.value))
      }}
    />
  )
}

function textOf(kind: 'lines' | 'pairs' | 'json', value: unknown): string {
  if (value === undefined || value === null) return ''
  if (kind === 'lines') return (value as readonly string[]).join('\n')
  if (kind === 'json') return JSON.stringify(value, undefined, 2)
  return Object.entries(value as Record<string, string>)
    .map(([name, text]) => `${name}=${text}`)
    .join('\n')
}

function parsed(kind: 'lines' | 'pairs' | 'json', text: string): unknown {
  if (text.trim() === '') return undefined
  if (kind === 'json') {
    try {
      return JSON.parse(text)
    } catch {
      return text // Invalid JSON: the schema rejects the text.
    }
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (kind === 'lines') return lines.map((line) => line.trim())
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...rest] = line.split('=')
      return [name.trim(), rest.join('=').trim()]
    }),
  )
}

function hintOf({ kind }: Field): string {
  return kind === 'lines' || kind === 'pairs' || kind === 'json' || kind === 'file' ? words[kind] : ''
}

function labelOf(name: string): string {
  const text = name
    .split('_')
    .map((word) => (acronyms.includes(word) ? word.toUpperCase() : word))
    .join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function flagOf(text: string): boolean | undefined {
  return text === '' ? undefined : text === 'true'
}

/** Text that is not a number is unchanged, so that the schema rejects it. */
function numberOf(text: string): unknown {
  if (text.trim() === '') return undefined
  return Number.isNaN(Number(text)) ? text : Number(text)
}
