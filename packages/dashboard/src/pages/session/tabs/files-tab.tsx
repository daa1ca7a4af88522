import {
  createDirectory,
  deleteDirectory,
  deleteFile,
  downloadDirZip,
  listFiles,
  readFile,
  writeFile,
} from '@berth/contract/agent/operations/fs-operations.ts'
import type { FileInfo } from '@berth/contract/agent/operations/fs-types.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type DragEvent, useState } from 'react'
import { call, callFile } from '../../../api/client.ts'
import { Confirm, Dialog } from '../../../components/dialog.tsx'
import { Failure, Pending } from '../../../components/feedback.tsx'
import { bytesText } from '../../../components/format.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { common } from '../../../strings/common.ts'
import { words } from '../../../strings/session.ts'
import type { TabProps } from './tab-props.ts'

const homeFolder = '/home/kernel'
const maxEditedBytes = 512 * 1024

export function FilesTab({ session: { session_id: id } }: TabProps) {
  const params = { id_or_name: id }
  const [folder, setFolder] = useState(homeFolder)
  const [edited, setEdited] = useState<FileInfo>()
  const [removed, setRemoved] = useState<FileInfo>()
  const [name, setName] = useState('')
  const [isOver, setOver] = useState(false)
  const queryKey = ['session', id, 'files', folder]
  const queries = useQueryClient()
  const files = useQuery({
    queryKey,
    queryFn: () => call(listFiles, { params, query: { path: folder } }),
    retry: false,
  })
  const refresh = async () => {
    // A first read that has not ended is not repeated, and may lack what has just changed.
    await queries.cancelQueries({ queryKey })
    await files.refetch()
  }
  const upload = useMutation({
    mutationFn: async (chosen: readonly File[]) => {
      for (const file of chosen) {
        await call(writeFile, { params, query: { path: `${folder}/${file.name}` }, body: file })
      }
    },
    onSettled: refresh,
  })
  const makeFolder = useMutation({
    mutationFn: () => call(createDirectory, { params, body: { path: `${folder}/${name}` } }),
    onSuccess: () => {
      setName('')
      return refresh()
    },
  })
  const save = useMutation({
    mutationFn: async ({ name: file, path, is_dir }: FileInfo) =>
      is_dir
        ? saveFile(`${file}.zip`, await callFile(downloadDirZip, { params, query: { path } }))
        : saveFile(file, await callFile(readFile, { params, query: { path } })),
  })
  const remove = useMutation({
    mutationFn: ({ path, is_dir }: FileInfo) => call(is_dir ? deleteDirectory : deleteFile, { params, body: { path } }),
    onSuccess: () => {
      setRemoved(undefined)
      return refresh()
    },
  })
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    upload.mutate([...event.dataTransfer.files])
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button offers the same to the keyboard.
    <div
      className={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div className="chips">
        <button
          type="button"
          aria-label={words.up}
          disabled={folder === '/'}
          onClick={() => setFolder(parentOf(folder))}
        >
          ↑
        </button>
        <input
          aria-label={words.path}
          className="grow"
          value={folder}
          onChange={({ target }) => setFolder(target.value)}
        />
        <label className="button">
          {words.upload}
          <input
            type="file"
            multiple
            className="hidden-input"
            onChange={({ target }) => upload.mutate([...(target.files ?? [])])}
          />
        </label>
      </div>
      <form
        className="chips"
        onSubmit={(event) => {
          event.preventDefault()
          makeFolder.mutate()
        }}
      >
        <input
          aria-label={words.newFolderName}
          placeholder={words.newFolderName}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        <button type="submit" disabled={name === '' || makeFolder.isPending}>
          {words.newFolder}
        </button>
        <span className="quiet">{words.drop}</span>
      </form>
      <Failure error={upload.error ?? makeFolder.error ?? save.error} />
      <Pending query={files} />
      {files.data?.length === 0 && <p className="quiet">{words.emptyFolder}</p>}
      <ul className="files" aria-label={words.tabs.files}>
        {files.data?.map((file) => (
          <li key={file.path}>
            <button
              type="button"
              className="ghost file-name"
              onClick={() => (file.is_dir ? setFolder(file.path) : setEdited(file))}
            >
              {file.is_dir ? '📁' : '📄'} {file.name}
            </button>
            <span className="quiet">{!file.is_dir && bytesText(file.size_bytes)}</span>
            <button
              type="button"
              className="small"
              aria-label={`${words.download} ${file.name}`}
              onClick={() => save.mutate(file)}
            >
              {words.download}
            </button>
            <button
              type="button"
              className="small danger"
              aria-label={`${common.remove} ${file.name}`}
              onClick={() => setRemoved(file)}
            >
              {common.remove}
            </button>
          </li>
        ))}
      </ul>
      {edited && <EditFile id={id} file={edited} onClose={() => setEdited(undefined)} onSaved={refresh} />}
      {removed && (
        <Confirm
          question={words.removeFile(removed.path)}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(removed)}
          onClose={() => setRemoved(undefined)}
        />
      )}
    </div>
  )
}

interface EditFileProps {
  readonly id: string
  readonly file: FileInfo
  readonly onClose: () => void
  readonly onSaved: () => unknown
}

function EditFile({ id, file: { path, size_bytes }, onClose, onSaved }: EditFileProps) {
  const params = { id_or_name: id }
  const [text, setText] = useState<string>()
  const content = useQuery({
    queryKey: ['session', id, 'file', path],
    queryFn: async () => {
      if (size_bytes > maxEditedBytes) throw new Error(words.tooLarge(bytesText(maxEditedBytes)))
      return (await callFile(readFile, { params, query: { path } })).text()
    },
    gcTime: 0,
    retry: false,
  })
  const save = useMutation({
    mutationFn: () => call(writeFile, { params, query: { path }, body: new Blob([text ?? '']) }),
    onSuccess: () => {
      onClose()
      onSaved()
    },
  })
  return (
    <Dialog title={words.editFile(path)} onClose={onClose} isWide>
      {content.data === undefined ? (
        <Pending query={content} />
      ) : (
        <textarea
          className="code tall"
          aria-label={path}
          spellCheck={false}
          value={text ?? content.data}
          onChange={({ target }) => setText(target.value)}
        />
      )}
      <Failure error={save.error} />
      <footer>
        <button type="button" onClick={onClose}>
          {common.cancel}
        </button>
        <button
          type="button"
          className="primary"
          disabled={text === undefined || save.isPending}
          onClick={() => save.mutate()}
        >
          {common.save}
        </button>
      </footer>
    </Dialog>
  )
}

function parentOf(folder: string): string {
  return folder.replace(/\/[^/]*\/?$/, '') || '/'
}
