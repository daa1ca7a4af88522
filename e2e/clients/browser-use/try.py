import asyncio
import base64
import json
import os

from browser_use import Agent, BrowserSession, ChatOpenAI

site = os.environ["SITE"]
thought = {"thinking": "", "evaluation_previous_goal": "", "memory": "", "next_goal": ""}
answers = [
    {**thought, "action": [{"navigate": {"url": site, "new_tab": False}}]},
    {**thought, "action": [{"evaluate": {"code": "document.querySelector('#q').value = 'sent'"}}, {"click": {"index": 0}}]},
    {**thought, "action": [{"done": {"text": "done", "success": True}}]},
]


async def drive(address: str) -> None:
    script = base64.urlsafe_b64encode(json.dumps(answers).encode()).decode().rstrip("=")
    # Another scheme makes the script of the second address a different one, which starts again.
    model = ChatOpenAI(model="stand-in", api_key="none", base_url=f"{os.environ['MODEL_URL']}/{script}")
    session = BrowserSession(cdp_url=address, keep_alive=True)
    agent = Agent(task="Open the form.", llm=model, browser_session=session, use_vision=False, use_judge=False)
    history = await agent.run(max_steps=5)
    assert history.is_done(), history.errors()
    assert any(url and url.startswith(site) for url in history.urls()), history.urls()
    await session.stop()


for way in ("CDP_WS_URL", "CDP_HTTP_URL"):
    answers[-1]["memory"] = way
    asyncio.run(drive(os.environ[way]))
