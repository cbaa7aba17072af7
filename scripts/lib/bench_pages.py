"""scripts/bench pages: a page with many GIFs, in the ways that docs/pages.md describes."""
import concurrent.futures
import json
import pathlib
import random
import re
import subprocess
import urllib.request

import browsers
import gifs
import lab
import processes

# A line of 20 Mbit/s with 40 ms.
LINE = {"offline": False, "latency": 40, "downloadThroughput": 2_500_000, "uploadThroughput": 2_500_000}
# How the addresses of the images get to negotiate.
WAYS = ("gifs", "script", "lazy", "rewrite", "mount")


class Visit:
    """A page, scrolled through in a browser that has loaded nothing before: the seconds until its first picture, the bytes of each image
    by its number, those of all else, and the browser's processor time."""

    def __init__(self, url):
        self.images, self.others = {}, 0
        self.addresses = {}
        with browsers.launch("chromium") as browser:
            page = browser.open()
            page.set_size(1280, 900)
            page.on_event = self.count
            page.command("Page.addScriptToEvaluateOnNewDocument", {"source": """
                new PerformanceObserver((list) => { window.first ??= list.getEntries()[0].renderTime || list.getEntries()[0].startTime })
                    .observe({ type: 'largest-contentful-paint', buffered: true });"""})
            page.command("Network.emulateNetworkConditions", LINE)
            before = processes.session_cpu(browser.session)
            page.goto(url, 300)
            page.wait_for("window.first", 60)
            # Half a second on each of thirty screens, and then on what is not there yet.
            page.evaluate("""(async () => {
                for (let screen = 0; screen < 30; screen += 1) {
                    scrollTo({ top: screen * (document.documentElement.scrollHeight - innerHeight) / 29, behavior: 'instant' });
                    await new Promise((done) => setTimeout(done, 500));
                }
            })()""", 120)
            missing = "[...document.images].find((image) => !image.complete || !image.naturalWidth)"
            page.wait_for(f"((image) => !image || void image.scrollIntoView())({missing})", 300)
            self.cpu = processes.session_cpu(browser.session) - before
            self.first = page.evaluate("first") / 1000

    def count(self, method, event):
        if method == "Network.requestWillBeSent":
            self.addresses[event["requestId"]] = event["request"]["url"]
        if method == "Network.dataReceived":
            # The script asks about sources by their addresses too.
            number = re.search(r"^[^?]*/(\d+)\.(gif|auto|webp|mp4)$", self.addresses.get(event["requestId"], ""))
            if number:
                self.images[int(number[1])] = self.images.get(int(number[1]), 0) + event["encodedDataLength"]
            else:
                self.others += event["encodedDataLength"]


class Site:
    """Serves the GIFs and the page."""

    def __init__(self, files):
        self.files = {f"/g/{number}.gif": data for number, data in enumerate(files)}

    def answer(self, request):
        body = self.files.get(request.path.partition("?")[0])
        request.reply(body, Cache_Control="max-age=60", Content_Type="image/gif" if request.path.endswith(".gif") else "text/html")

    def show(self, gifreel, base, home, way):
        """A visit of the page whose images have their addresses in a way."""
        lazy = "loading=lazy" if way == "lazy" else ""
        start = base + "/neg/" if way == "mount" else "/g/"
        images = "".join(
            f'<p><img width=320 height=240 style="object-fit: contain" {lazy} src="{start}{number}.gif" alt="{number}"></p>'
            for number in range(len(self.files) - ("/page" in self.files)))
        script = f'<script src="{base}/gifreel.js" defer></script>' if way in ("script", "lazy") else ""
        page = f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>x</title>{script}<body>{images}</body></html>".encode()
        if way == "rewrite":
            page = subprocess.run(
                [gifreel, "rewrite", "--server", base, "--base", home + "/"], input=page, check=True, capture_output=True).stdout
        self.files["/page"] = page
        return Visit(home + "/page")


def keep(base, source):
    """Has the files stored that browsers request of a source."""
    facts = json.load(urllib.request.urlopen(f"{base}/json/{source}", timeout=300))
    for kind in ("avif", "mp4", "webp") if facts["page"]["as"] == "video" else ("avif",):
        urllib.request.urlopen(f"{base}/{kind}/{source}", timeout=900).read()


def pages(options):
    """A page with GIFs as it is, with the script, rewritten, and through a mount that negotiates, for the first and for a later visitor."""
    if options.gifs:
        paths = sorted(pathlib.Path(options.gifs).glob("*.gif"))
        paths = random.Random(60).sample(paths, min(options.count, len(paths)))
        files = [path.read_bytes() for path in paths]
    else:
        files = [gifs.bars(number, frames=10 + number % 20, side=90, width=120) + bytes(20_000) for number in range(options.count)]
    total, site = sum(map(len, files)), Site(files)

    def view(way, visitor, base):
        visit = site.show(options.gifreel, base, home, way)
        own = sum(visit.images.values())
        larger = [(number, len(files[number]), count) for number, count in visit.images.items() if count > len(files[number])]
        lab.report(
            own <= total and visit.others < 40_000,
            f"{way}, {visitor} visitor: {own:,} bytes of images ({own / total:.1%}), {visit.others:,} of others, "
            f"{visit.first:.2f} s until the first picture, {visit.cpu:.1f} s of processor time")
        lab.report(not larger, f"{way}, {visitor} visitor: no image has more bytes than its GIF {larger or ''}")

    with lab.serving(site.answer) as home:
        settings = {"log__level": "error", "mounts__neg__origin": home + "/g/", "mounts__neg__negotiate": "true"}
        for way in WAYS:
            with lab.started(options.gifreel, **settings) as server:
                view(way, "first", server.url())
        with lab.started(options.gifreel, **settings) as server:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda number: keep(server.url(), f"{home}/g/{number}.gif"), range(len(files))))
            for way in WAYS[1:]:
                view(way, "later", server.url())
