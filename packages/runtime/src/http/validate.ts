import { BerthError, type ErrorDetail } from '@berth/contract/errors.ts'
import type { z } from 'zod'

const maxReportedFaults = 20

/**
 * Validates with the schema. A violation becomes `invalid_input`, which names the field, the rule and the kind of the
 * value.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data

  const sentences = result.error.issues.map((issue) => faultSentence(issue, value, place))
  const faults: ErrorDetail[] = sentences
    .slice(0, maxReportedFaults)
    .map((message) => ({ code: 'invalid_input', message }))
  const reason = sentences[0] ?? `The ${place} is invalid.`
  throw new BerthError('invalid_input', { reason }, faults.length > 1 ? { faults } : {})
}

function faultSentence(issue: z.core.$ZodIssue, root: unknown, place: string): string {
  const field = issue.path.length > 0 ? fieldName(issue.path, root) : place
  const rule = ruleOf(issue)
  // A forbidden field is forbidden for every kind of value.
  const found =
    rule.startsWith('must') && issue.code !== 'unrecognized_keys'
      ? `, not ${kindOf(valueAt(root, issue.path), issue)}`
      : ''
  return `${shorten(field)}: ${rule}${found}.`
}

/** `hosts.0`. Items with a type include it: `actions[0] (scroll): scroll.x`. */
function fieldName(path: readonly PropertyKey[], root: unknown): string {
  const [list, index, ...rest] = path
  const item = valueAt(
    root,
    [list, index].filter((step) => step !== undefined),
  ) as { type?: unknown } | undefined
  if (typeof index !== 'number' || typeof item?.type !== 'string') return path.map(String).join('.')
  const place = `${String(list)}[${index}] (${shorten(item.type)})`
  return rest.length > 0 ? `${place}: ${rest.map(String).join('.')}` : place
}

function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${article(issue.expected)}`
    case 'too_small':
      return issue.origin === 'string' || issue.origin === 'array'
        ? `must have at least ${issue.minimum} ${issue.origin === 'string' ? 'characters' : 'items'}`
        : `must be at least ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string' || issue.origin === 'array'
        ? `must have at most ${issue.maximum} ${issue.origin === 'string' ? 'characters' : 'items'}`
        : `must be at most ${issue.maximum}`
    case 'invalid_value':
      return valuesRule(issue.values)
    case 'unrecognized_keys':
      return `must not have the field ${issue.keys.map(shorten).join(', ')}`
    case 'invalid_union':
      return unionRule(issue)
    case 'invalid_key':
      return issue.issues[0]?.message ?? 'must have a valid key'
    default:
      return issue.message
  }
}

function valuesRule(values: readonly unknown[]): string {
  const names = values.map((value) => (value === '' ? 'the empty string' : String(value)))
  return names.length === 1 ? `must be ${names[0]}` : `must be one of ${names.join(', ')}`
}

/** Describes each form that the value may have. */
function unionRule({ errors, message }: z.core.$ZodIssueInvalidUnion): string {
  const rules = errors.flatMap(([first]) => (first === undefined ? [] : [ruleOf(first)]))
  const [rule, ...others] = [...new Set(rules)]
  if (rule === undefined) return message
  return [rule, ...others.map((other) => other.replace(/^must (be )?/, ''))].join(', or ')
}

function article(expected: string): string {
  if (expected === 'int') return 'a whole number'
  if (expected === 'record') return 'an object'
  return /^[aeiou]/.test(expected) ? `an ${expected}` : `a ${expected}`
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root
  for (const key of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[key]
  return value
}

/**
 * The kind of the value and, where it is short and harmless, its size. Never the value itself, which may be a secret.
 * Numbers are shown only where a number is expected: elsewhere it may be a PIN.
 */
function kindOf(value: unknown, issue: z.core.$ZodIssue): string {
  if (value === undefined) return 'absent'
  if (value === null) return 'null'
  if (Array.isArray(value)) return `an array of ${value.length} items`
  if (typeof value === 'string') return `a string of ${[...value].length} characters`
  if (typeof value === 'number') return asksForNumber(issue) ? `the number ${value}` : 'a number'
  if (typeof value === 'object') return `an object of ${Object.keys(value).length} keys`
  return `a ${typeof value}`
}

function asksForNumber(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_type') return issue.expected === 'number' || issue.expected === 'int'
  return issue.code === 'too_small' || issue.code === 'too_big' || issue.code === 'not_multiple_of'
}

function shorten(field: string): string {
  return field.length <= 200 ? field : `${field.slice(0, 200)}…`
}
