"""Accessibility rules by axe-core, which scripts/setup --checks installs in .tools."""
import lab

# The rules of WCAG and axe-core's best practices, and WCAG 2.2, 2.5.8: targets of 24 by 24 CSS pixels.
OPTIONS = "{ resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } }"


def axe():
    """The text of axe-core."""
    found = sorted(lab.ROOT.glob(".tools/lib/python3*/site-packages/axe_playwright_python/axe.min.js"))
    if not found:
        raise lab.Missing("axe-core is missing: scripts/setup --checks installs it")
    return found[0].read_text()


def complaints(page, axe):
    """Violations in a page as sentences."""
    page.evaluate(axe + "; 0")
    return page.evaluate(f"""axe.run(document, {OPTIONS}).then((all) => all.violations.map(
        (rule) => `${{rule.id}} (${{rule.impact}}): ${{rule.help}}: ${{rule.nodes.map((node) => node.target.join(' ')).join(', ')}}`))""", 60)
