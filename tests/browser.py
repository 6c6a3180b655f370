"""A real Chromium, driven by chromedriver over plain HTTP: no package needed."""
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
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
                   "args": [*QUIET, f"--user-data-dir={self.profile}"]}
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

    def open(self, url, width=1280, dark=False, height=900):
        """Open a page as a stranger would whose window has that width."""
        self.call("/url", url="about:blank")
        self.cdp("Storage.clearDataForOrigin", storageTypes="local_storage",
                 origin="/".join(url.split("/")[:3]))
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 600)
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
