"""What axe-core finds on a page: what keeps readers from reading or using it."""

from browser import Browser
from harness.paths import TARGET

AXE = TARGET / "axe" / "node_modules" / "axe-core" / "axe.min.js"

# Each with the first elements that it is about. Colours alone differ in the other scheme.
RUN = """
const [within, rules, done] = arguments;
const options = rules.length
  ? { runOnly: { type: "rule", values: rules } }
  : { rules: { "target-size": { enabled: true } } };
if (!document.querySelector(within)) return done([]);
axe.run({ include: [[within]] }, { ...options, resultTypes: ["violations"] }).then(
  ({ violations }) => done(violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => node.html)])),
  (error) => done([["axe", [String(error)]]]),
);
"""


def violations(browser: Browser, *rules: str, within: str = "html") -> list[list[object]]:
    # The page's policy runs no foreign script; what the driver runs isn't the page's.
    if not browser.run("return 'axe' in window"):
        browser.run(f"{AXE.read_text()}; window.axe = axe;")
    return browser.driver.execute_async_script(RUN, within, rules)
