"""Accessibility rules, checked against Chromium's accessibility tree and computed styles.

    for complaint in accessible.complaints(page):
        print(complaint)

Where axe-core is at hand (`axe()` finds it), `axe_complaints` asks that too. It is not part of this repository:
`pip install --no-deps axe-playwright-python` brings it, or any axe.min.js does.
"""
import importlib.util
import os

# Roles of the tree that must have a name (WAI-ARIA 1.2 section 8.4 and what screen readers announce).
NAMED = {
    "button", "checkbox", "combobox", "ColorWell", "dialog", "DisclosureTriangle", "heading", "iframe", "image", "link", "listbox",
    "menuitem", "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "Video", "group", "form", "region",
    "progressbar", "meter",
}
# Roles that may have no name.
OPTIONAL = {"group", "form"}

CONTRAST = """(() => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const channels = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, ground) => top.slice(0, 3).map((value, at) => (value * top[3] + ground[at] * (255 - top[3])) / 255).concat(255);
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    const style = getComputedStyle(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!node.data.trim() || box.width < 2 || box.height < 2 || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest('.unseen, script, style, [aria-hidden=true], :disabled')) continue;
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(channels(getComputedStyle(at).backgroundColor));
    const ground = layers.reduce((ground, layer) => over(layer, ground), channels('Canvas'));
    const [a, b] = [light(over(channels(style.color), ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio < needed) found.push(`contrast ${ratio.toFixed(2)} under ${needed}: “${node.data.trim().slice(0, 40)}”`);
  }
  return found;
})()"""


def complaints(page):
    """Violations as sentences: names, headings, landmarks, language, contrast, targets."""
    page.command("Accessibility.enable")
    nodes = page.command("Accessibility.getFullAXTree")["nodes"]
    wrong = []
    headings, landmarks = [], []
    for node in nodes:
        if node.get("ignored"):
            continue
        role = node.get("role", {}).get("value", "")
        name = node.get("name", {}).get("value", "").strip()
        if role in NAMED - OPTIONAL and not name:
            wrong.append(f"a {role} has no name")
        if role == "heading":
            level = next((each["value"]["value"] for each in node.get("properties", []) if each["name"] == "level"), 0)
            headings.append((level, name))
        if role in ("main", "banner", "contentinfo"):
            landmarks.append(role)
    page.command("Accessibility.disable")
    if [level for level, _ in headings].count(1) != 1:
        wrong.append(f"{[level for level, _ in headings].count(1)} headings of level 1")
    for (before, _), (level, name) in zip(headings, headings[1:]):
        if level > before + 1:
            wrong.append(f"heading “{name}” of level {level} follows one of level {before}")
    if landmarks.count("main") != 1:
        wrong.append(f"{landmarks.count('main')} main landmarks")
    if not page.evaluate("document.documentElement.lang"):
        wrong.append("the page tells no language")
    if not page.evaluate("document.title"):
        wrong.append("the page has no title")
    wrong += page.evaluate("""[...document.querySelectorAll('[id]')].map((e) => e.id)
        .filter((id, at, all) => all.indexOf(id) !== at).map((id) => `the id ${id} occurs twice`)""")
    # WCAG 2.2, 2.5.8: targets of 24 by 24 CSS pixels.
    wrong += page.evaluate("""[...document.querySelectorAll('button, input, select, summary, a.button')]
        .filter((e) => e.checkVisibility()).map((e) => [e, e.getBoundingClientRect()])
        .filter(([, box]) => box.width < 24 || (box.height < 24 && box.height > 0))
        .map(([e, box]) => `${e.id || e.textContent} is ${box.width} × ${box.height}`)""")
    wrong += page.evaluate(CONTRAST)
    return wrong


def axe(path=None):
    """The text of axe-core, or None."""
    if not path:
        path = os.environ.get("AXE_CORE")
    if not path:
        spec = importlib.util.find_spec("axe_playwright_python")
        path = spec and os.path.join(os.path.dirname(spec.origin), "axe.min.js")
    if not path:
        return None
    with open(path, encoding="utf8") as file:
        return file.read()


def axe_complaints(page, text):
    """Violations that axe-core finds with all its rules: those of WCAG and its best practices."""
    page.evaluate(text + "; 0")
    found = page.evaluate("""axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations.map(
        (rule) => `${rule.id} (${rule.impact}): ${rule.help}: ${rule.nodes.map((node) => node.target.join(' ')).join(', ')}`))""", 60)
    return found
