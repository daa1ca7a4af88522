import { callTable } from './call-table.ts'

const page = 'data:text/html,<input><select><option>a</select><input type=file><button>B'

/** Every MCP tool with each of its actions and arguments. */
export const toolTable = callTable(`
get_connection_context {}
search_docs {"query":"pools"}
manage_browsers {"action":"create","name":"tools","headless":true,"timeout_seconds":600,"telemetry_console":true} -> session=session_id
manage_browsers {"action":"create","viewport_width":3} ! viewport.height
manage_browsers {"action":"update","session_id":"tools","start_url":"about:blank"}
manage_browsers {"action":"update","session_id":"tools","timeout_seconds":500} ! timeout_seconds: cannot be changed
manage_browsers {"action":"list"}
manage_browsers {"action":"get","session_id":"{session}"}
manage_browsers {"action":"get","session_id":".."} ! id_or_name: must not be empty
manage_browsers {"action":"delete","session_id":""} ! id_or_name: must not be empty
tabs {"session_id":"tools","action":"close","tab_id":".."} ! tab_id: must not be empty
manage_browsers {"action":"get_telemetry","session_id":"tools"}
manage_browsers {"action":"get_telemetry","session_id":"tools","compact":false} ! needs categories

navigate {"session_id":"tools","url":"${page}"}
snapshot {"session_id":"tools"} -> box~(e\\d+) textbox
snapshot {"session_id":"tools"} -> list~(e\\d+) combobox
snapshot {"session_id":"tools"} -> button~(e\\d+) button "B"
type {"session_id":"tools","ref":"{box}","text":"typed"}
select {"session_id":"tools","ref":"{list}","values":["a"]}
click {"session_id":"tools","ref":"{button}"}
click {"session_id":"tools","ref":"none"} ! ref
press {"session_id":"tools","key":"Tab"}
upload {"session_id":"tools","ref":"{box}","paths":["/tmp/none"]} ! [code: 
wait_for {"session_id":"tools","url":"data:"}
wait_for {"session_id":"tools","text":"never","timeout_ms":1} ! [code: page_wait_timed_out]
extract {"session_id":"tools"}
screenshot {"session_id":"tools"}
tabs {"session_id":"tools","action":"open","url":"about:blank"} -> tab~^(t\\d+)
tabs {"session_id":"tools","action":"list"}
tabs {"session_id":"tools","action":"activate","tab_id":"{tab}"}
tabs {"session_id":"tools","action":"close","tab_id":"{tab}"}
download {"session_id":"tools"}
download {"session_id":"tools","name":"none"} ! [code: file_not_found]
computer_action {"session_id":"tools","actions":[{"type":"move_mouse","move_mouse":{"x":5,"y":5}},{"type":"screenshot"}]}
browser_curl {"session_id":"tools","url":"{pages}/"}
execute_playwright_code {"session_id":"tools","code":"return 1"}
exec_command {"session_id":"tools","command":"true"}
manage_replays {"action":"start","session_id":"tools"} -> replay=replay_id
manage_replays {"action":"list","session_id":"tools"}
manage_replays {"action":"stop","session_id":"tools","replay_id":"{replay}"}

manage_profiles {"action":"setup","profile_name":"of-connection"} ! exists already
manage_profiles {"action":"list"}
manage_profiles {"action":"get","profile_name":"of-connection"}
manage_profiles {"action":"rename","profile_name":"of-connection","new_name":"other"}
manage_profiles {"action":"delete","profile_name":"other"}
manage_projects {"action":"create","name":"of-tools"} -> project=id
manage_projects {"action":"list"}
manage_projects {"action":"get","project":"of-tools"}
manage_projects {"action":"update","project":"{project}","name":"renamed"}
manage_projects {"action":"get_limits","project":"renamed"}
manage_projects {"action":"update_limits","project":"renamed","max_concurrent_sessions":2}
manage_browsers {"action":"list","project":"renamed"}
manage_projects {"action":"delete","project":"{project}"}
manage_api_keys {"action":"create","name":"of-tools"} -> key=id
manage_api_keys {"action":"list"}
manage_api_keys {"action":"get","api_key_id":"{key}"}
manage_api_keys {"action":"update","api_key_id":"{key}","name":"other"}
manage_api_keys {"action":"delete","api_key_id":"{key}"}
manage_browser_pools {"action":"create","name":"pool","size":1,"headless":true}
manage_browser_pools {"action":"list"}
manage_browser_pools {"action":"get","id_or_name":"pool"}
manage_browser_pools {"action":"update","id_or_name":"pool","fill_rate_per_minute":0}
manage_browser_pools {"action":"acquire","id_or_name":"pool","acquire_timeout_seconds":30} -> leased=session_id
manage_browser_pools {"action":"release","id_or_name":"pool","session_id":"{leased}"}
manage_browser_pools {"action":"flush","id_or_name":"pool"}
manage_browser_pools {"action":"delete","id_or_name":"pool","force":true}
manage_proxies {"action":"create","type":"custom","name":"way","custom_host":"127.0.0.1","custom_port":{port}}
manage_proxies {"action":"list"}
manage_proxies {"action":"get","proxy_id":"way"}
manage_proxies {"action":"rename","proxy_id":"way","name":"ways"}
manage_proxies {"action":"check","proxy_id":"ways"}
manage_proxies {"action":"delete","proxy_id":"ways"}
manage_extensions {"action":"list"}
manage_extensions {"action":"delete","id_or_name":"none"} ! [code: extension_not_found]
manage_credentials {"action":"create","name":"login","domain":"a.example","values":{"username":"u"},"totp_secret":"JBSWY3DPEHPK3PXP"}
manage_credentials {"action":"list"}
manage_credentials {"action":"get","id_or_name":"login"}
manage_credentials {"action":"totp_code","id_or_name":"login"}
manage_credentials {"action":"update","id_or_name":"login","values":{"password":"p"}}
manage_auth_connections {"action":"create","domain":"a.example","profile_name":"of-tool","credential_name":"login"} -> connection=id
manage_auth_connections {"action":"list"}
manage_auth_connections {"action":"get","id":"{connection}"}
manage_auth_connections {"action":"login","id":"none"} ! [code: auth_connection_not_found]
manage_auth_connections {"action":"submit","id":"{connection}","fields":{"a":"b"}} ! [code: 
manage_auth_connections {"action":"wait","id":"{connection}","wait_seconds":1}
manage_auth_connections {"action":"delete","id":"{connection}"}
manage_credentials {"action":"delete","id_or_name":"login"}
manage_credential_providers {"action":"create","name":"q","token":"t"} -> provider=id
manage_credential_providers {"action":"list"}
manage_credential_providers {"action":"get","id":"{provider}"}
manage_credential_providers {"action":"update","id":"{provider}","name":"r"}
manage_credential_providers {"action":"list_items","id":"none"} ! [code: credential_provider_not_found]
manage_credential_providers {"action":"test","id":"none"} ! [code: credential_provider_not_found]
manage_credential_providers {"action":"delete","id":"{provider}"}
manage_apps {"action":"list_apps"}
manage_apps {"action":"invoke","app_name":"none","action_name":"none"} ! [code: action_not_found]
manage_apps {"action":"get_deployment","deployment_id":"none"} ! [code: deployment_not_found]
manage_apps {"action":"list_deployments"}
manage_apps {"action":"delete_deployment","deployment_id":"none"} ! [code: deployment_not_found]
manage_apps {"action":"get_invocation","invocation_id":"none"} ! [code: invocation_not_found]
manage_apps {"action":"list_invocation_browsers","invocation_id":"none"} ! [code: invocation_not_found]
manage_browsers {"action":"delete","session_id":"tools"}
manage_browsers {"action":"delete","session_id":"tools"} ! [code: session_not_found]
`)
