import asyncio
import base64
import os

from crawl4ai import AsyncWebCrawler, BrowserConfig, CrawlerRunConfig


async def crawl(address: str) -> None:
    async with AsyncWebCrawler(config=BrowserConfig(cdp_url=address, verbose=False)) as crawler:
        result = await crawler.arun(os.environ["SITE"], config=CrawlerRunConfig(screenshot=True, pdf=True, verbose=False))
        assert result.success, result.error_message
        assert "# A form" in result.markdown, result.markdown
        assert base64.b64decode(result.screenshot)[1:4] == b"PNG"
        assert result.pdf.startswith(b"%PDF")


for way in ("CDP_WS_URL", "CDP_HTTP_URL"):
    asyncio.run(crawl(os.environ[way]))
