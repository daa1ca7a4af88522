import { callTable } from './call-table.ts'

/** Every command, without the name of the program. Words of a command contain no spaces. */
export const commandTable = callTable(`
login {url} --api-key @key.txt --name other
servers other
logout other
logout other ! no server is stored as other
deploy none.ts ! none.ts is not a file
deploy a.txt --env NAME ! --env: NAME must have the form name=value
invoke none none ! action_not_found
logs none ! there is no app none
mcp --server none ! no server is stored as none
health
status
auth context

browsers create --name main --headless --timeout-seconds 600 --telemetry-browser-console {"enabled":true} -o json -> session=session_id
browsers create --viewport-width 3 ! viewport.height
browsers list
browsers get {session}
browsers get none ! session_not_found
browsers get .. ! id_or_name: must not be empty
browsers page tabs delete main . ! tab_id: must not be empty
browsers computer screenshot main -O none/picture.png ! none/picture.png cannot be written
browsers cp main:/etc/hostname none/name ! none/name cannot be written
browsers process exec main none-such ! (process_start_failed)
browsers view main
browsers update main --tags a=b
browsers computer click-mouse main --x 5 --y 5
browsers computer move-mouse main --x 9 --y 9
browsers computer screenshot main -O picture.png
browsers computer type main --text abc
browsers computer press-key main --keys F5
browsers computer scroll main --x 5 --y 5 --delta-y 1
browsers computer drag-mouse main --path [[1,2],[3,4]]
browsers computer cursor main --hidden
browsers computer get-mouse-position main
browsers computer batch main --actions [{"type":"sleep","sleep":{"duration_ms":1}}]
browsers computer clipboard-write main --text copied
browsers computer clipboard-read main

browsers page navigate main --url data:text/html,<input><select><option>a</select><input/type=file><button>B
browsers page snapshot main -> box~(e\\d+) textbox
browsers page snapshot main -> list~(e\\d+) combobox
browsers page snapshot main -> button~(e\\d+) button "B"
browsers page type main --ref {box} --text typed
browsers page select main --ref {list} --values a
browsers page click main --ref {button}
browsers page press main --key Tab
browsers page upload main --ref {box} --paths /tmp/none ! file
browsers page wait-for main --url data:
browsers page extract main
browsers page screenshot main
browsers page tabs create main --url about:blank -o json -> tab=tab_id
browsers page tabs list main
browsers page tabs activate main {tab}
browsers page tabs delete main {tab}

browsers curl main {pages}/
browsers playwright execute main return(1)
browsers playwright execute main --executor second return(1)
browsers playwright executors list main
browsers playwright executors delete main second
browsers repl main 1+1
browsers webmcp tools main
browsers webmcp invoke main --tool-ref none ! tool
browsers webmcp custom-tools add main --namespace n --source [{kind:'page',match:{url_patterns:['*://a.example/*']},tool:{name:'t',description:'d',inputSchema:{type:'object'}},execute:()=>1}]
browsers webmcp custom-tools list main
browsers webmcp custom-tools delete main none ! tool

browsers fs write-file main --path /tmp/d/a.txt --file a.txt
browsers fs read-file main --path /tmp/d/a.txt -O read.txt
browsers fs read-file main --path /tmp/none -O read.txt ! file_not_found
browsers fs list-files main --path /tmp/d
browsers fs file-info main --path /tmp/d/a.txt
browsers fs create-directory main --path /tmp/e
browsers fs set-file-permissions main --path /tmp/d/a.txt --mode 600
browsers fs move main --src-path /tmp/d/a.txt --dest-path /tmp/e/b.txt
browsers fs download-dir-zip main --path /tmp/e -O e.zip
browsers fs upload main --files file=a.txt,dest_path=/tmp/e/c.txt
browsers fs upload-zip main --zip-file e.zip --dest-path /tmp/f
browsers fs watch start main --path /tmp/e -o json -> watch=watch_id
browsers fs watch stop main {watch}
browsers fs watch events main {watch} ! watch
browsers fs delete-file main --path /tmp/e/b.txt
browsers fs delete-directory main --path /tmp/e
browsers cp a.txt main:/tmp/copied.txt
browsers cp main:/tmp/copied.txt copied.txt

browsers process exec main true
browsers process spawn main --allocate-tty cat -o json -> process=process_id
browsers process status main {process}
browsers process stdin main {process} --data-b64 YQ==
browsers process resize main {process} --rows 30 --cols 90
browsers process kill main {process}
browsers process stdout-stream main {process}
browsers shell main ! a shell needs a terminal
browsers logs stream main --source path --path /tmp/copied.txt --no-follow
browsers downloads list main
browsers downloads get main none -O none ! file_not_found
browsers replays start main -o json -> replay=replay_id
browsers replays list main
browsers replays stop main {replay}
browsers replays download main {replay} -O replay.mp4
browsers telemetry events main
browsers telemetry stream none ! session_not_found
browsers extensions upload main --extensions name=a,zip_file=a.txt ! zip

profiles create --name kept
profiles list
profiles get kept
profiles update kept --name renamed
profiles download renamed -O profile.tar
profiles delete renamed
extensions upload --file extension.zip --name ext
extensions list
extensions get ext
extensions download ext -O downloaded.zip
extensions delete ext
extensions from-chrome-store --url none -O none ! url
proxies create --type custom --name way --config-host 127.0.0.1 --config-port {port}
proxies list
proxies get way
proxies update way --name ways
proxies check ways
proxies delete ways
browser-pools create --size 1 --name pool --headless
browser-pools list
browser-pools get pool
browser-pools update pool --fill-rate-per-minute 0
browser-pools acquire pool --acquire-timeout-seconds 30 -o json -> leased=session_id
browser-pools release pool --session-id {leased}
browser-pools flush pool
browser-pools delete pool --force

credentials create --name login --domain a.example --values username=u --totp-secret JBSWY3DPEHPK3PXP
credentials list
credentials get login
credentials update login --name same
credentials totp-code same
credential-providers create --provider-type onepassword --name p --token t
credential-providers list
credential-providers get none ! credential_provider_not_found
credential-providers update none --name q ! credential_provider_not_found
credential-providers test none ! credential_provider_not_found
credential-providers items none ! credential_provider_not_found
credential-providers delete none ! credential_provider_not_found
auth connections create --domain a.example --profile-name of-connection --credential-name same -o json -> connection=id
auth connections list
auth connections get {connection}
auth connections update {connection} --no-health-checks
auth connections submit {connection} --mfa-option-id x ! flow
auth connections timeline list {connection}
auth connections exchange {connection} --code none ! code
auth connections events none ! not_found
auth connections login none ! not_found
auth connections delete {connection}
credentials delete same
vaults create --name safe
vaults list
vaults get safe
vaults encryption-key safe
vaults items set safe key --data {} ! type
vaults items list safe
vaults items get safe key ! vault_item_not_found
vaults items update safe key --data {} ! spec
vaults items delete safe key ! vault_item_not_found
vaults items events safe key ! vault_item_not_found
vaults items operations safe key --data {} ! type
vaults delete safe
vault-provider-configs create --data {} ! provider
vault-provider-configs list
vault-provider-configs get none ! not_found
vault-provider-configs update none --data {} ! not_found
vault-provider-configs delete none ! not_found

apps list
deployments create --file a.txt --entrypoint-rel-path index.ts ! zip
deployments list
deployments get none ! deployment_not_found
deployments events none ! deployment_not_found
deployments delete none ! deployment_not_found
invocations create --app-name none --action-name none ! action_not_found
invocations list
invocations get none ! invocation_not_found
invocations update none --status failed ! invocation_not_found
invocations events none ! invocation_not_found
invocations browsers list none ! invocation_not_found
invocations browsers delete none ! invocation_not_found

search run word ! No search provider
search providers
search get none ! search_not_found
search contents none ! search_not_found
config-registry list
config-registry lookup --url https://a.example/
config-registry resolve --url none ! url
config-registry analyses list
config-registry analyses get none ! not_found
config-registry analyses cancel none ! not_found

projects create --name second -o json -> project=id
projects list
projects get second
projects update second --name third
projects limits get third
projects limits set third --max-concurrent-sessions 1
browsers list --project third
projects delete {project}
api-keys create --name spare -o json -> key=id
api-keys list
api-keys get {key}
api-keys update {key} --name other
api-keys rotate {key}
api-keys delete {key}
org limits get
org limits set --default-project-max-concurrent-sessions 50
org entitlements
audit-logs search --start {yesterday} --end {tomorrow}
audit-logs download --start {yesterday} --end {tomorrow} -O audit.jsonl
audit-logs export destinations create --type s3 --format jsonl.gz --region us-east-1 --bucket b --prefix p --role-arn arn:aws:iam::123456789012:role/r ! bucket
audit-logs export destinations list
audit-logs export destinations get none ! not_found
audit-logs export destinations update none --status paused ! not_found
audit-logs export destinations test none ! not_found
audit-logs export destinations delete none ! not_found
telemetry destinations create --name otlp --endpoint {local}
telemetry destinations list
telemetry destinations get otlp
telemetry destinations update otlp --description text
telemetry destinations delete otlp
webhooks create --url {local}/hook -o json -> hook=id
webhooks list
webhooks get {hook}
webhooks update {hook} --description text
webhooks rotate-secret {hook}
webhooks test {hook} -o json -> delivery=id
webhooks deliveries list {hook}
webhooks deliveries get {hook} {delivery}
webhooks deliveries redeliver {hook} {delivery}
webhooks delete {hook}
browsers delete main
browsers delete main ! session_not_found
`)
