"""A real Chromium, driven by chromedriver over plain HTTP: no package needed."""
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

DRIVER = shutil.which("chromedriver")
CHROME = shutil.which("chromium") or shutil.which("google-chrome")
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --disable-default-apps --disable-dev-shm-usage --hide-scrollbars""".split()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    """Serve a folder on a free port of this machine; returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0),
                                 partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


PAGES = ["", "anatomy/", "results/", "paste/"]
WIDTHS = [1280, 390]
# What a reader may look for, and the chapter that introduces it.
WORDS = {"nudge": 1, "gradient": 1, "central": 1, "chain rule": 2, "tensor": 2, "backward": 2, "jacobian": 2,
         "unbroadcast": 3, "adjoint": 3, "relu": 4, "sigmoid": 4, "logits": 4, "cross-entropy": 4,
         "matrix product": 4, "gradcheck": 5, "complex step": 5, "learning rate": 6, "sgd": 6, "momentum": 6,
         "rmsprop": 6, "adam": 6, "bias correction": 6, "zero_grad": 6, "spirals": 7, "network": 7, "cover": 9,
         "examine": 9, "muon": 11, "adamw": 11, "warm-up": 11}

OUT_OF_REACH = """
    return [...document.querySelectorAll("article :is(pre, code, .table)")].filter(
        e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0
             && getComputedStyle(e).overflowX == "auto").map(e => e.outerHTML)"""

# Pictures are one image to a reader, and one token of code has the colour of all
# of its kind: looking at each of the thousands would take a minute.
THIN = """
    document.querySelectorAll("article svg").forEach(e => e.innerHTML = "")
    const seen = new Set()
    document.querySelectorAll("article .highlight code").forEach(code => {
        const thin = code.cloneNode(true)
        thin.querySelectorAll("span").forEach(e => seen.has(e.className)
            ? e.replaceWith(...e.childNodes) : seen.add(e.className))
        thin.normalize()
        code.replaceWith(thin)
    })"""

AXE = """
    const [dark, done] = arguments
    const rules = dark ? {runOnly: ["color-contrast"]} : {}
    axe.run({resultTypes: ["violations"], ...rules}).then(r => done(r.violations
        .filter(v => ["serious", "critical"].includes(v.impact))
        .map(v => [v.id, v.nodes.length, v.nodes[0].html, v.nodes[0].failureSummary])))"""

COLOURS = """
    const s = document.querySelector("article svg[role=img]")
    return [getComputedStyle(document.body).backgroundColor,
            s ? getComputedStyle(s).color : ""]"""

TYPE = """
    const q = document.querySelector("input.md-search__input")
    document.querySelectorAll(".md-search-result__item").forEach(e => e.remove())
    if (!document.getElementById("__search").checked) document.getElementById("__search").click()
    q.focus(); q.value = arguments[0]
    q.dispatchEvent(new Event("keyup", {bubbles: true}))
    q.dispatchEvent(new Event("input", {bubbles: true}))"""


# The button that copies a cell, and the code below it, on a phone.
BUTTONS = """
    return [...document.querySelectorAll("article .highlight")].filter(e => e.offsetParent).map(e => {
        const button = e.querySelector(".md-code__nav"), code = e.querySelector("code")
        return [getComputedStyle(button).opacity,
                code.getBoundingClientRect().top - button.getBoundingClientRect().bottom]})"""

# Each exercise that asks for numbers, answered rightly and wrongly as a person would.
ANSWERS = """
    const said = {}
    const close = {"0.09": "0.0905", "12.0": "12.1", "0.75": "3/4", "0": "false", "1024": "1024.0"}
    for (const form of document.querySelectorAll(".exercise form")) {
        const name = form.parentElement.id, right = form.parentElement.querySelector("[data-right]").dataset.right
        const wrong = right.split(", ").map(n => n === "False" ? "true" : `${Number(n) + 1}`).join(" ")
        const ask = answer => {
            form.querySelector("input").value = answer
            form.querySelector("button").click()
            return form.querySelector("output").textContent
        }
        said[name] = [ask(right), ask(close[right] ?? `[${right.replace("-", "\u2212")}]`), ask(wrong), ask(right + ", 7"),
                      ask("much"), ask(""), ask("7,0, 2,0, 1,0")]
    }
    return said"""

# On paper nothing scrolls, what is folded stays so, and there is nothing to click.
PAPER = """
    dispatchEvent(new Event("beforeprint"))         // the theme opens all folds
    const shown = e => e.offsetParent && e.checkVisibility({contentVisibilityAuto: true})
    return {open: [...document.querySelectorAll("article details > :not(summary)")].filter(shown).length,
            cut: [...document.querySelectorAll("article pre")].filter(e => e.offsetParent).filter(e =>
                e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY != "visible").length,
            forms: [...document.querySelectorAll("article form, article .md-code__nav")].filter(e => e.offsetParent).length}"""


class Browser:
    def __enter__(self):
        self.profile = tempfile.mkdtemp()
        self.driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL)
        for line in self.driver.stdout:
            if "successfully on port" in line:
                port = line.rsplit(" ", 1)[1].strip(" .\n")
                break
        self.url = f"http://127.0.0.1:{port}/session"
        options = {"binary": CHROME,
                   "args": [*QUIET, f"--user-data-dir={self.profile}"],
                   "prefs": {"session.restore_on_startup": 4,
                             "session.startup_urls": ["about:blank"]}}
        self.url += "/" + self.call("", capabilities={"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"performance": "ALL"}}})["sessionId"]
        return self

    def __exit__(self, *_):
        try:
            urllib.request.urlopen(urllib.request.Request(
                self.url, method="DELETE"), timeout=10)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, path, **body):
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def cdp(self, command, **parameters):
        return self.call("/goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 600)

    def rest(self):
        """Wait until the page has taken its size, and nothing moves."""
        self.call("/execute/async", args=[], script="""
            const [done] = arguments
            requestAnimationFrame(() => requestAnimationFrame(done))""")
        self.wait("return document.getAnimations().length == 0")

    def open(self, url, width=1280, dark=False):
        """Open a page as a stranger would whose window has that width."""
        self.call("/url", url="about:blank")
        self.cdp("Storage.clearDataForOrigin", storageTypes="local_storage",
                 origin="/".join(url.split("/")[:3]))
        self.resize(width)
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])
        self.call("/url", url=url)

    def js(self, code, *arguments):
        return self.call("/execute/sync", script=code, args=list(arguments))

    def wait(self, code, *arguments, seconds=10):
        """Run code until it returns something true, and return that."""
        for _ in range(seconds * 20):
            if value := self.js(code, *arguments):
                return value
            time.sleep(0.05)
        raise TimeoutError(code)

    def requests(self):
        """The addresses asked for since the last time."""
        log = self.call("/se/log", type="performance")
        messages = [json.loads(entry["message"])["message"] for entry in log]
        return [m["params"]["request"]["url"] for m in messages
                if m["method"] == "Network.requestWillBeSent"]

    def search(self, words):
        """The addresses found for words, best first."""
        self.js(TYPE, words)
        return self.wait("return [...document.querySelectorAll("
                         "'.md-search-result__link')].map(a => a.href)")


class Looks:
    """What a stranger sees, one look after the other in a thread of its own.

    looks[name] waits for that look, and raises what went wrong in it.
    """
    def __init__(self, site, folder):
        self.site, self.folder, self.window = site, folder, None
        self.pool, self.jobs = ThreadPoolExecutor(1), {}
        if not (DRIVER and CHROME):
            return
        self.begin("arrival", self.arrive)
        for page in PAGES:
            for dark in False, True:
                self.begin((page, dark), self.page, page, dark)
        self.begin("search", self.search)
        self.begin("plain", self.plain)
        self.begin("requests", lambda: self.window.requests())

    def begin(self, name, look, *arguments):
        self.jobs[name] = self.pool.submit(look, *arguments)

    def __getitem__(self, name):
        self.jobs["arrival"].result()
        return self.jobs[name].result()

    def arrive(self):
        """Fetch axe-core, wait for the site, and start the browser."""
        got = shutil.which("npm") and subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--prefix",
             str(self.folder), "axe-core@4"], capture_output=True)
        file = self.folder / "node_modules/axe-core/axe.min.js"
        self.axe = got and file.exists() and file.read_text("utf-8")
        self.home = serve(self.site.result())
        self.window = Browser().__enter__()

    def page(self, page, dark):
        """What is seen at each width. In the dark story its address is read
        after a scroll; in the light one the exercises are answered and the
        buttons of a phone measured; and a light page is printed, and its
        reader switches it to dark and searches."""
        window, seen = self.window, {}
        window.open(f"{self.home}/{page}", WIDTHS[0], dark)
        if page == "anatomy/":
            window.wait("return document.querySelector('.md-code__nav')")
            if dark:
                seen["tracking"] = self.tracking()
            else:
                seen["answers"] = window.js(ANSWERS)
        for width in WIDTHS:
            window.resize(width)
            window.rest()
            seen[width] = {
                "scheme": window.js("return document.body.dataset.mdColorScheme"),
                "width": window.js("return document.documentElement.scrollWidth"),
                "out of reach": window.js(OUT_OF_REACH),
                "buttons": window.js(BUTTONS)}
        if self.axe:
            window.js(self.axe)
            window.js(THIN)
            for width in WIDTHS[::-1]:
                window.resize(width)
                window.rest()
                seen[width]["axe"] = window.call("/execute/async", script=AXE,
                                                 args=[dark])
        if not dark:
            seen["paper"] = self.paper()
            window.resize(WIDTHS[0])
            seen["light"] = window.js(COLOURS)
            for scheme in "default", "slate":       # from the system's to light, and then to dark
                window.js("document.querySelector('label[for^=__palette]:not([hidden])').click()")
                window.wait("return document.body.dataset.mdColorScheme == arguments[0]", scheme)
            seen["dark"] = window.js(COLOURS)
            window.search("gradient")
        return seen

    def paper(self):
        """What is printed of the page that is open."""
        self.window.resize(720)
        self.window.cdp("Emulation.setEmulatedMedia", media="print")
        self.window.rest()
        try:
            return self.window.js(PAPER)
        finally:
            self.window.cdp("Emulation.setEmulatedMedia", media="")

    def tracking(self):
        """The address of the page after its reader has scrolled to chapter 5."""
        for y in "3000", "document.querySelector('h2[id^=\"5-\"]').getBoundingClientRect().top + scrollY":
            self.window.js(f"window.scrollTo(0, {y})")
            time.sleep(0.6)         # the theme waits until its reader has stopped
        return self.window.js("return location.hash")

    def search(self):
        """The addresses found for each of WORDS."""
        self.window.open(f"{self.home}/")
        return {words: self.window.search(words) for words in WORDS}

    def plain(self):
        """The text of the story where no script runs."""
        window = self.window
        window.cdp("Emulation.setScriptExecutionDisabled", value=True)
        window.open(f"{self.home}/anatomy/", 390)
        try:
            return window.cdp("Runtime.evaluate", expression=(
                "document.querySelector('article').innerText"))["result"]["value"]
        finally:
            window.cdp("Emulation.setScriptExecutionDisabled", value=False)

    def close(self):
        self.pool.shutdown(cancel_futures=True)
        if self.window:
            self.window.__exit__()
