import os

from vibium.sync_api import browser

bro = browser.start(os.environ["WEBDRIVER_WS_URL"])
page = bro.new_page()
page.go(os.environ["SITE"])
page.find("#q").fill("sent")
page.find("#send").click()
assert page.title() == "sent", page.title()
assert page.screenshot()[1:4] == b"PNG"
bro.stop()
