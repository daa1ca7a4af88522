import os

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

site = os.environ["SITE"]
options = webdriver.ChromeOptions()
options.enable_bidi = True
driver = webdriver.Remote(command_executor=os.environ["WEBDRIVER_HTTP_URL"], options=options)
driver.get(site)
entries = []
driver.script.add_console_message_handler(entries.append)
driver.find_element(By.ID, "q").send_keys("sent")
driver.find_element(By.ID, "send").click()
WebDriverWait(driver, 5).until(lambda d: d.title == "sent")
driver.execute_script("console.log('heard')")
WebDriverWait(driver, 5).until(lambda d: [entry.text for entry in entries] == ["heard"])
assert driver.get_screenshot_as_png()[1:4] == b"PNG"
driver.execute_script("setTimeout(() => { document.title = confirm('Sure?') })")
WebDriverWait(driver, 5, ignored_exceptions=[Exception]).until(lambda d: d.switch_to.alert.text == "Sure?")
driver.switch_to.alert.accept()
WebDriverWait(driver, 5).until(lambda d: d.title == "true")
driver.quit()
