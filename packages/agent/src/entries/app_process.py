"""Runs the actions of a Python app, one after another, as app-process.ts does for JavaScript.

Whatever the app does to this process, the server sees its end.
"""

import asyncio
import dataclasses
import importlib.util
import inspect
import json
import os
import re
import sys
import tempfile
import traceback
from urllib.parse import urlsplit

INVOCATION_HEADER = "x-berth-invocation"
MAX_REASON_LENGTH = 2_000

_, ENTRYPOINT, BERTH_URL = sys.argv[:3]
# The app may read its input and replace its output.
CONTROL = os.fdopen(os.dup(0), encoding="utf-8")
OUTPUT = os.dup(1)
with open(os.devnull) as nothing:
    os.dup2(nothing.fileno(), 0)

current_invocation = None


def tell(secret, message):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    rest = memoryview(f"\n{secret} {json.dumps(message)}\n".encode())
    while rest:
        rest = rest[os.write(OUTPUT, rest) :]


def reason_of(error):
    return (str(error) or type(error).__name__)[:MAX_REASON_LENGTH]


def mark_requests():
    """Has each request to berth name the invocation that it is made in. The official client sends by httpx."""
    try:
        import httpx
    except ImportError:
        return
    origin = origin_of(BERTH_URL)

    def mark(request):
        if current_invocation is not None and origin_of(str(request.url)) == origin:
            request.headers[INVOCATION_HEADER] = current_invocation

    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def marked_send(self, request, **options):
        mark(request)
        return send(self, request, **options)

    async def marked_send_async(self, request, **options):
        mark(request)
        return await send_async(self, request, **options)

    httpx.Client.send, httpx.AsyncClient.send = marked_send, marked_send_async


def origin_of(url):
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return (parts.scheme, parts.hostname, parts.port or default)


def load():
    folder = os.path.dirname(ENTRYPOINT)
    # Replaces this program's own folder.
    sys.path[:1] = list(dict.fromkeys([folder, os.getcwd()]))
    sys.argv = [ENTRYPOINT]
    mark_requests()
    name = re.sub(r"\W", "_", os.path.basename(ENTRYPOINT).removesuffix(".py"))
    spec = importlib.util.spec_from_file_location(name, ENTRYPOINT)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and others find their module by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    framework = sys.modules.get("kernel.app_framework")
    apps = framework.app_registry.get_apps() if framework else []
    if apps:
        return framework, apps
    raise LookupError("The entrypoint registers no app. Call App() of kernel at its top level.")


def plain(value):
    """Values that JSON does not know, and that the client and its users return."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"The result cannot be written as JSON: it has a {type(value).__name__}.")


def run(framework, apps, runner, call, path):
    global current_invocation
    current_invocation = call["invocation_id"]
    try:
        app = next((app for app in apps if app.name == call["app"]), None)
        action = app.get_action(call["action"]) if app else None
        if action is None:
            raise LookupError(f"The app {call['app']} registers no action {call['action']}.")
        payload = json.loads(call["payload"]) if "payload" in call else None
        context = framework.KernelContext(invocation_id=current_invocation)
        # Outside the event loop: a synchronous handler may use clients that refuse to run in one.
        result = action.handler(context, payload)
        if inspect.isawaitable(result):
            result = runner.run(wait_for(result))
        text = json.dumps(result, default=plain, allow_nan=False)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return {"type": "done", "path": path}
    except (Exception, asyncio.CancelledError) as error:
        traceback.print_exc()
        return {"type": "failed", "reason": reason_of(error)}
    finally:
        current_invocation = None


async def wait_for(result):
    return await result


def main():
    secret = json.loads(CONTROL.readline())["secret"]
    try:
        framework, apps = load()
        described = [{"name": app.name, "actions": [action.name for action in app.get_actions()]} for app in apps]
    except Exception as error:
        traceback.print_exc()
        tell(secret, {"type": "load-failed", "reason": reason_of(error)})
        return
    folder = tempfile.mkdtemp(prefix="results-")
    tell(secret, {"type": "loaded", "apps": described})
    # One event loop for all, because clients in the app's modules belong to the loop that first used them.
    with asyncio.Runner() as runner:
        for count, line in enumerate(iter(CONTROL.readline, "")):
            tell(secret, run(framework, apps, runner, json.loads(line), os.path.join(folder, f"{count}.json")))


main()
# Do not wait for the app's threads, which may never end.
os._exit(0)
