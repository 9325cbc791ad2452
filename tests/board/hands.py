"""How a reader works a page: with a mouse, with a finger, by keyboard alone. Each counts its strokes."""

from collections.abc import Iterable

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions import interaction
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from browser import Browser
from harness.server import eventually

# What is further away than this needs a key of its own.
TABS_MAX = 12
# As a person would, who looks for it before: in the middle of the window.
SHOW = "arguments[0].scrollIntoView({ block: 'center' })"
# What a finger at its middle touches.
TOUCHED = """
const { x, y, width, height } = arguments[0].getBoundingClientRect();
const there = document.elementFromPoint(x + width / 2, y + height / 2);
return [arguments[0].contains(there), width, height];
"""
# Where the focus is, and whether a person sees that.
FOCUS = """
const at = document.activeElement;
if (!at || at === document.body || at.id === "main") return [null, false];
const { top, left, bottom, right } = at.getBoundingClientRect();
const style = getComputedStyle(at);
const isIn = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
const isMarked = at.matches(":focus-visible") && style.outlineStyle !== "none"
  && parseFloat(style.outlineWidth) >= 2;
return [at, isIn && isMarked];
"""


class Mouse:
    def __init__(self, browser: Browser):
        self.browser = browser
        self.strokes = 0

    def use(self, selector: str, *_: str) -> None:
        """A link or a button. The keys are those of a keyboard."""
        self.touch(self.browser.one(selector))

    def touch(self, element: WebElement) -> None:
        element.click()
        self.strokes += 1

    def tick(self, boxes: list[WebElement]) -> None:
        """Boxes that stand one below the other."""
        self.touch(boxes[0])
        ActionChains(self.browser.driver).key_down(Keys.SHIFT).click(boxes[-1]).key_up(
            Keys.SHIFT
        ).perform()
        self.strokes += 1

    def back(self) -> None:
        self.browser.driver.back()
        self.strokes += 1


class Finger(Mouse):
    """What it touches is large enough, and nothing lies over it."""

    def touch(self, element: WebElement) -> None:
        self.browser.run(SHOW, element)
        is_hit, width, height = self.browser.run(TOUCHED, element)
        # A link in a line of text is as high as the line.
        assert is_hit and width >= 24 and height >= 16, element.get_attribute("outerHTML")
        touch = PointerInput(interaction.POINTER_TOUCH, "finger")
        actions = ActionBuilder(self.browser.driver, mouse=touch)
        actions.pointer_action.move_to(element).pointer_down().pointer_up()
        actions.perform()
        self.strokes += 1

    def tick(self, boxes: list[WebElement]) -> None:
        for box in boxes:
            self.touch(box)


class Keyboard(Mouse):
    """It sees at each key where it is."""

    def use(self, selector: str, *keys: str) -> None:
        """Presses these keys, then Tab until it is there, then Enter."""
        self.press(keys)
        eventually(lambda: self.browser.all(selector))
        for _ in range(TABS_MAX):
            if self.is_at(selector):
                break
            self.press([Keys.TAB])
        assert self.is_at(selector), f"{selector} is more than {TABS_MAX} tabs away"
        self.browser.press(Keys.ENTER)
        self.strokes += 1

    def tick(self, boxes: list[WebElement]) -> None:
        # A page that the reader came back to is as it was left.
        is_there = self.browser.run("return arguments[0].closest('tr').matches('.at')", boxes[0])
        self.press([*([] if is_there else ["j"]), "x", *["j"] * (len(boxes) - 1), "X"])

    def back(self) -> None:
        # Alt and an arrow are keys of the browser, not of the page: the driver sends none of them.
        self.browser.driver.back()
        self.strokes += 1

    def press(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.browser.press(key)
            self.strokes += 1
            at, is_seen = self.browser.run(FOCUS)
            assert at is None or is_seen, at.get_attribute("outerHTML")

    def is_at(self, selector: str) -> bool:
        return self.browser.run("return document.activeElement.matches(arguments[0])", selector)
