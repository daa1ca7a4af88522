import base64
import os
from urllib.parse import urlsplit

from kernel import ConflictError, Kernel, NotFoundError

client = Kernel(api_key=os.environ["BERTH_API_KEY"], base_url=os.environ["BERTH_URL"])
session = client.browsers.create(headless=True)
id = session.session_id
assert any(listed.session_id == id for listed in client.browsers.list())
site = os.environ["SITE"]
answer = client.browsers.playwright.execute(id, code=f"await page.goto('{site}'); return page.title()")
assert answer.result == "Form", answer
ran = client.browsers.process.exec(id, command="echo", args=["here"])
assert (ran.exit_code, base64.b64decode(ran.stdout_b64)) == (0, b"here\n"), ran
client.browsers.fs.write_file(id, b"content", path="/tmp/file")
assert client.browsers.fs.read_file(id, path="/tmp/file").read() == b"content"
assert client.browsers.computer.capture_screenshot(id).read()[1:4] == b"PNG"
client.browsers.delete_by_id(id)

destination = client.telemetry.destinations.create(
    name="collector", endpoint="https://collector.example", headers={"Authorization": "secret"}
)
assert destination.headers == {"authorization": ""}, destination
assert client.telemetry.destinations.retrieve("collector") == destination
observed = client.browsers.create(headless=True, telemetry={"browser": {"console": {"enabled": True}}})
assert observed.telemetry.browser.console.enabled, observed
log = "await page.evaluate(() => console.log('told'))"
with client.browsers.telemetry.stream(observed.session_id, type=["console_log"]) as stream:
    client.browsers.playwright.execute(observed.session_id, code=log)
    told = next(iter(stream))
assert (told.event.type, told.event.data.text) == ("console_log", "told"), told
client.browsers.delete_by_id(observed.session_id)
stored = list(client.browsers.telemetry.events(observed.session_id, type=["console_log"], limit=1))
assert [one.seq for one in stored] == [told.seq], stored
assert client.telemetry.destinations.update("collector", headers={"Authorization": None}).headers == {}
client.telemetry.destinations.delete("collector")
try:
    client.browsers.retrieve(id)
    raise SystemExit("the deleted session is still there")
except NotFoundError:
    pass

# The client's site is on the loopback, which the operator allows.
registry = client.config_registry
started = registry.resolve(url=f"{site}/", allowed_proxy_countries=["US"])
result = registry.analyses.wait_for_result(started.analysis.id, poll_interval=0.5, max_wait_seconds=150)
assert result.analysis.status == "completed", result
assert result.recommendation.type == "recommendation", result
assert result.recommendation.browser.headless and result.recommendation.proxy.mode == "direct", result
assert registry.analyses.retrieve(started.analysis.id).recommendation == result.recommendation
assert registry.analyses.cancel(started.analysis.id).analysis.status == "completed"
assert registry.lookup(url=f"{site}/other").recommendation.match_scope == "host"
assert [listed.analysis.id for listed in registry.analyses.list(search=site)] == [started.analysis.id]
summary = next(iter(registry.list(sort_by="success_rate", sort_order="desc")))
assert (summary.analysis_id, summary.recommended_config_label) == (started.analysis.id, "headless"), summary
assert list(client.browsers.list()) == []
search = client.search.create(
    query="a form",
    max_results=3,
    strategy={"type": "fallback", "providers": [{"provider": "brave"}, {"provider": "searxng"}]},
    content={"source": "browser", "format": "text", "browser": {"mode": "curl"}},
    timeout_ms=50_000,
)
assert (search.provider, search.query) == ("searxng", "a form"), search
assert [attempt.outcome for attempt in search.attempts] == ["success"], search.attempts
assert search.warnings[0].code == "provider_ineligible", search.warnings
assert search.results[0].content.status == "ok", search.results
assert "Nothing is sent." in search.results[0].content.text, search.results
assert client.search.retrieve(search.id) == search
(provider,) = client.search.providers.list(slug="searxng")
assert (provider.slug, provider.params.recency.support) == ("searxng", "native"), provider
client.search.contents.fetch(search.id, limit=1)
assert client.browsers.list().items == []
try:
    client.search.retrieve("nothing")
    raise SystemExit("there is a search that nobody made")
except NotFoundError:
    pass

vaults = client.vaults
vault = vaults.upsert(name="logins")
assert vaults.upsert(name="logins") == vault == vaults.retrieve("logins")
assert [listed.id for listed in vaults.list(query="log")] == [vault.id]
assert vaults.retrieve_encryption_key(vault.id).jwk.crv == "P-256"
fields = [
    {"name": "user", "type": "text", "sensitive": False, "value": "ann"},
    {"name": "password", "type": "password"},
]
spec = {"provider": "kernel", "fields": fields}
item = vaults.items.upsert("shop", id_or_name="logins", type="credential", spec=spec)
assert (item.state.status, item.action.name) == ("pending_collection", "collect"), item
assert item.state.fields["user"].value == "ann", item
changed = vaults.items.update(
    "shop", id_or_name="logins", type="credential", version=1, spec={"fields": {"password": {"value": "secret"}}}
)
assert (changed.version, changed.state.status, changed.action) == (2, "ready", None), changed
assert vaults.items.retrieve("shop", id_or_name="logins", wait=0).version == 2
assert [listed.key for listed in vaults.items.list("logins")] == ["shop"]
session = client.browsers.create(headless=True, vaults=[{"name": "logins"}])
client.browsers.playwright.execute(session.session_id, code=f"await page.goto('{site}'); await page.setContent('<input id=a>')")
filled = vaults.items.perform_operation(
    "shop",
    id_or_name="logins",
    type="fill",
    browser_id=session.session_id,
    fields=[{"field": "password", "selector": "#a"}],
)
assert (filled.status, filled.fields[0].status) == ("completed", "filled"), filled
read = client.browsers.playwright.execute(session.session_id, code="return page.locator('#a').inputValue()")
assert read.result == "secret", read
events = vaults.items.events("shop", id_or_name="logins")
assert [event.name for event in events][-1] == "fill.completed", events
client.browsers.delete_by_id(session.session_id)
config = client.vault_provider_configs.create(
    provider="link", name="payments", credentials={"client_id": "id", "client_secret": "secret"}
)
assert client.vault_provider_configs.retrieve("payments") == config
client.vault_provider_configs.delete("payments")
vaults.items.delete("shop", id_or_name="logins")
vaults.delete("logins")

connections = client.auth.connections
connection = connections.create(domain=urlsplit(site).hostname, profile_name="ann", login_url=f"{site}/login")
assert (connection.status, connection.flow_status, connection.health_checks) == ("NEEDS_AUTH", None, True), connection
assert [listed.id for listed in connections.list(profile_name="ann")] == [connection.id]
assert connections.update(connection.id, health_check_interval=900).health_check_interval == 900
try:
    connections.create(domain=connection.domain, profile_name="ann")
    raise SystemExit("a profile has two connections to one site")
except ConflictError as error:
    assert error.body["existing_id"] == connection.id, error.body
begun = connections.login(connection.id)
assert (begun.flow_type, begun.id) == ("LOGIN", connection.id) and begun.handoff_code in begun.hosted_url, begun
last = None
for event in connections.follow(connection.id):
    if event.event != "managed_auth_state":
        continue
    if event.flow_step == "AWAITING_INPUT" and (last is None or last.interaction_id != event.interaction_id):
        values = {field.id: "secret" if field.type == "password" else "ann@example.com" for field in event.fields}
        answer = connections.submit(connection.id, interaction_id=event.interaction_id, field_values=values)
        assert answer.accepted, answer
    last = event
assert (last.flow_status, last.flow_step) == ("SUCCESS", "COMPLETED"), last
connection = connections.retrieve(connection.id)
assert (connection.status, connection.can_reauth) == ("AUTHENTICATED", True), connection
assert client.credentials.retrieve(connection.credential.name).has_values
(login,) = connections.timeline(connection.id, type="login")
assert (login.status, login.step) == ("SUCCESS", "COMPLETED"), login
connections.delete(connection.id)
assert list(client.browsers.list()) == []
