export const words = {
  required: '(required)',
  lines: 'One per line.',
  pairs: 'One key=value per line.',
  json: 'JSON.',
  file: 'Drop the file here, or choose it.',
  standard: 'default',
  yes: 'yes',
  no: 'no',
}
