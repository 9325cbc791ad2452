"""Chromium, driven as a person would: it clicks, types and looks."""

import json
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from harness.server import eventually

PHONE = (390, 844)
DESK = (1400, 860)


class Browser:
    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        # Tests may run as root, where Chromium's sandbox can't; the pages are our own.
        for argument in (
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "disable-dev-shm-usage",
            "hide-scrollbars",
        ):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(30)
        self.look()

    def look(
        self, size: tuple[int, int] = DESK, scheme: str = "light", zone: str = "Europe/Berlin"
    ) -> None:
        """How the reader looks at pages."""
        metrics = {
            "width": size[0],
            "height": size[1],
            "deviceScaleFactor": 1,
            "mobile": size == PHONE,
        }
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            # What is measured isn't on its way from one colour to another.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})

    def open(self, url: str) -> None:
        self.driver.get(url)
        # On a busy machine the driver may come back before the style is there.
        eventually(lambda: self.run("return document.readyState") == "complete", 30)

    def follow(self, selector: str) -> None:
        """Goes where a link leads, and waits for the whole page, which a click doesn't."""
        self.open(self.one(selector).get_attribute("href"))

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        return eventually(lambda: self.all(selector))[0]

    def text(self, selector: str = "main") -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def sees(self, text: str, selector: str = "main", within_s: float = 10) -> None:
        """Waits until the text is there."""
        __tracebackhide__ = True
        try:
            eventually(lambda: text in self.text(selector), within_s)
        except AssertionError:
            raise AssertionError(f"{text!r} isn't in\n{self.text(selector)}") from None

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def run(self, script: str, *args: Any) -> Any:
        return self.driver.execute_script(script, *args)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """What the browser's console says since the last time: script errors, breaches of the
        policy.
        """
        return [json.dumps(entry) for entry in self.driver.get_log("browser")]

    def quit(self) -> None:
        self.driver.quit()
