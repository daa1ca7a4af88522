/*
 * Every operation that can be called from inside a session, in the order of the API. Bodies are JSON unless the table
 * says otherwise. JSON bodies are strict: an unknown key is an error.
 */

interface ListedOperation {
  readonly method: string
  /** Below `/browsers/{id_or_name}`, and below the session's own address. */
  readonly path: string
  readonly body: 'none' | 'strict' | 'open' | 'multipart' | 'bytes'
}

const list = (text: string): readonly ListedOperation[] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/) as [string, string, ListedOperation['body']])
    .map(([method, path, body]) => ({ method, path, body }))

export const operationTable: Readonly<Record<string, readonly ListedOperation[]>> = {
  computer: list(`
    POST /computer/click_mouse strict
    POST /computer/move_mouse strict
    POST /computer/screenshot strict
    POST /computer/type strict
    POST /computer/press_key strict
    POST /computer/scroll strict
    POST /computer/drag_mouse strict
    POST /computer/cursor strict
    POST /computer/get_mouse_position none
    POST /computer/batch strict
    POST /computer/clipboard/read none
    POST /computer/clipboard/write strict
  `),
  playwright: list(`
    POST /playwright/execute strict
    GET /playwright/executors none
    DELETE /playwright/executors/{} none
  `),
  repl: list(`
    POST /repl strict
  `),
  webmcp: list(`
    GET /webmcp/tools none
    POST /webmcp/invoke open
    GET /webmcp/custom-tools none
    POST /webmcp/custom-tools open
    DELETE /webmcp/custom-tools/{} none
  `),
  filesystem: list(`
    GET /fs/read_file none
    PUT /fs/write_file bytes
    GET /fs/list_files none
    GET /fs/file_info none
    PUT /fs/create_directory strict
    PUT /fs/delete_file strict
    PUT /fs/delete_directory strict
    PUT /fs/set_file_permissions strict
    PUT /fs/move strict
    GET /fs/download_dir_zip none
    POST /fs/upload multipart
    POST /fs/upload_zip multipart
    POST /fs/watch strict
    GET /fs/watch/{}/events none
    DELETE /fs/watch/{} none
  `),
  process: list(`
    POST /process/exec strict
    POST /process/spawn strict
    GET /process/{}/status none
    GET /process/{}/stdout/stream none
    POST /process/{}/stdin strict
    POST /process/{}/kill strict
    POST /process/{}/resize strict
  `),
  curl: list(`
    POST /curl strict
  `),
}
