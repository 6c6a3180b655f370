"""The site: built as a person builds it, read as a stranger reads it."""
import gzip
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import browser
import jupytext
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
PAGES = ["", "anatomy/", "results/", "paste/"]
BOOK = jupytext.read(ROOT / "anatomy.py", fmt="py:percent").cells
CHAPTERS = re.findall("(?m)^# ## (.+)", (ROOT / "anatomy.py").read_text("utf-8"))
GENERATED = sorted((ROOT / "docs/generated").glob("*.*"))


def mkdocs(folder, **files):
    """A copy of the project in folder, with some files changed, being built."""
    shutil.copytree(ROOT / "docs", folder / "docs",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("anatomy.py", "mkdocs.yml"):
        shutil.copy(ROOT / name, folder)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_URL": ""})


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Two sites, built at the same time in two folders, one with a space."""
    folders = [tmp_path_factory.mktemp(name) for name in ("a clone", "again")]
    running = [mkdocs(folder) for folder in folders]
    for process in running:
        said = process.communicate()[0]
        assert process.returncode == 0, said
        assert not re.search(r"^(WARNING|ERROR)", said, re.M), said
    return [folder / "site" for folder in folders]


@pytest.fixture(scope="session")
def site(builds):
    return builds[0]


@pytest.fixture(scope="session")
def pages(site):
    """Every HTML page of the site, parsed, by its path."""
    return {path.relative_to(site).as_posix():
            BeautifulSoup(path.read_text("utf-8"), "html.parser")
            for path in site.rglob("*.html")}


@pytest.fixture(scope="session")
def anatomy(pages):
    return pages["anatomy/index.html"].article


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def flat(text):
    return " ".join(text.split())


def test_two_builds_are_the_same(builds):
    one, other = map(files, builds)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_nothing_that_is_not_for_readers_is_published(site):
    assert {path.suffix for path in site.rglob("*") if path.is_file()} <= {
        ".html", ".css", ".js", ".json", ".svg", ".png", ".xml", ".gz", ".map",
        ".py", ".ipynb"}
    assert [path.name for path in site.rglob("*.py")] == ["anatomy.py"]
    assert (site / "anatomy.py").read_bytes() == (
        ROOT / "anatomy.py").read_bytes()


@pytest.mark.parametrize("text, wanted", [
    ("# %%\nassert 1 + 1 == 3\n", "assert 1 + 1 == 3"),
    ("# %% [markdown]\n# # A\n#\n# $\\frac{1}$\n", "Expected \\frac"),
])
def test_a_failure_ends_the_build(text, wanted, tmp_path):
    build = mkdocs(tmp_path, anatomy=text)
    said = build.communicate()[0]
    assert build.returncode != 0 and wanted in said
    assert not (tmp_path / "site/anatomy/index.html").exists()


def test_formulas_are_drawn_in_prose_and_not_in_code():
    found = importlib.util.spec_from_file_location(
        "formulas", ROOT / "docs/formulas.py")
    formulas = importlib.util.module_from_spec(found)
    found.loader.exec_module(formulas)
    drawn = BeautifulSoup(formulas.on_page_content(
        "<p>if $a &lt; b^2$ and $$\\dfrac{a}{b}$$</p><pre>$c$</pre>",
        None, None, None), "html.parser")
    assert [svg["aria-label"] for svg in drawn.p.select("svg.math, svg.display")
            ] == ["a < b^2", "\\dfrac{a}{b}"]
    assert drawn.pre.get_text() == "$c$" and "$" not in drawn.p.get_text()
    ids = [tag["id"] for tag in drawn.select("[id]")]
    assert len(ids) == len(set(ids))


def test_links_and_anchors_lead_somewhere(site, pages):
    for name, page in pages.items():
        here = "/" + name
        for tag in page.select("[href], [src]"):
            target = tag.get("href") or tag.get("src")
            if urlsplit(target).scheme in ("https", "http", "mailto", "data"):
                continue
            path, anchor = urldefrag(urljoin(here, target))
            path = unquote(path).lstrip("/")
            if not path or path.endswith("/"):
                path += "index.html"
            assert (site / path).is_file(), (name, target)
            if anchor and path in pages:
                assert pages[path].find(id=unquote(anchor)) or (
                    tag.name == "use"), (name, target)


def test_no_page_asks_another_host_for_anything(site, pages):
    elsewhere = re.compile(r"^\s*(https?:)?//")
    for name, page in pages.items():
        for tag in page.select("[src], [srcset], link[href], use, image"):
            for attribute in ("src", "srcset", "href", "xlink:href"):
                assert not elsewhere.match(tag.get(attribute, "")), (name, tag)
        styles = [tag.get_text() for tag in page.select("style")]
        styles += [tag["style"] for tag in page.select("[style]")]
        for style in styles:
            assert not re.search(r"url\(\s*['\"]?(https?:)?//", style), name
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//",
                             path.read_text("utf-8")), path


def test_the_contents_name_every_chapter(pages):
    page = pages["anatomy/index.html"]
    links = {flat(link.get_text()): link["href"] for link in
             page.select("nav.md-nav--secondary a.md-nav__link")}
    for chapter in CHAPTERS:
        heading = page.find(id=links[chapter].lstrip("#"))
        assert heading.name == "h2" and chapter in heading.get_text()


def test_headings_are_in_order(pages):
    for name, page in pages.items():
        levels = [int(h.name[1]) for h in page.select("article :is(h1,h2,h3)")]
        assert levels.count(1) == 1, name
        assert all(b <= a + 1 for a, b in zip(levels, levels[1:])), name


def test_each_cell_has_its_output_below_it(site, anatomy):
    cells = [cell for cell in jupytext.read(site / "anatomy/anatomy.ipynb")
             .cells if cell.cell_type == "code"]
    shown = anatomy.select(".highlight")
    assert len(shown) == len(cells)
    for cell, code in zip(cells, shown):
        assert code.get_text().strip() == cell.source.strip()
        below = code if code.parent.name == "article" else code.parent
        below = below.find_next_sibling(True)
        if below and "fold" in below.get("class", []):      # the answers are
            below = below.select_one(".outputs") or below
        assert bool(cell.outputs) == (
            below is not None and "outputs" in below.get("class", []))
        for output in cell.outputs:
            assert output.get("name") != "stderr", output
            if output.output_type == "stream":
                assert flat(output.text) in flat(below.get_text())
            elif "<svg" in output.data.get("text/html", ""):
                assert below.svg
        if re.search(r'wanted\("(?s:.*)\n +(print|table|picture)\(',
                     cell.source):
            assert cell.outputs, cell.source


def test_nothing_is_left_of_the_notebook_it_was(anatomy):
    assert not anatomy.select('[class*="jp-"], [class*="Mirror"], script')
    assert "In [" not in anatomy.get_text() and not anatomy.select("style")
    for text in anatomy.find_all(string=re.compile(r"\$|\\\(|\\\[")):
        assert text.find_parent(["pre", "code"]), text
    assert anatomy.select(".highlight .k") and anatomy.select(".outputs > pre")


def test_every_picture_has_a_name(pages):
    for name, page in pages.items():
        for picture in page.select("article :is(img, svg)"):
            assert picture.get("aria-label") or picture.get("alt") or (
                flat(picture.parent.get_text())), (name, picture)
    said = {svg["aria-label"] for svg in
            pages["anatomy/index.html"].select(".outputs svg")}
    assert all(len(alt) > 40 for alt in said), sorted(said, key=len)[:3]
    assert said == {unescape(re.search('aria-label="(.*?)"', path.read_text(
        "utf-8"))[1]) for path in GENERATED if path.suffix == ".svg"}, (
        "docs/generated is not what anatomy.py draws: run make figures")


def test_pictures_can_be_read_on_a_phone():
    for path in GENERATED:
        if path.suffix == ".svg":
            width = float(re.search(r'viewBox="0 0 (\S+)', path.read_text())[1])
            assert 9 * 358 / width > 8.5, f"{path.name}: letters of {width}"


def test_no_id_is_used_twice(pages):
    for name, page in pages.items():
        ids = [tag["id"] for tag in page.select("[id]")]
        assert len(ids) == len(set(ids)), name


def test_results_show_everything_in_story_order(pages):
    page = pages["results/index.html"].article
    for path in GENERATED:
        text = path.read_text("utf-8")
        if path.suffix == ".svg":
            alt = unescape(re.search('aria-label="(.*?)"', text)[1])
            assert len(page.select(f'svg[aria-label="{alt}"]')) == 1, path
        else:
            cells = re.sub(r"\\|\||---:?", " ", text.replace("\\", ""))
            assert flat(cells) in flat(page.get_text(" ")), path
        assert path.name in page.get_text()
    titles = [h.get_text().rstrip("¶") for h in page.select("h2")]
    assert titles == [title for title in CHAPTERS if title in titles]


def test_no_number_on_the_other_pages_is_typed_by_hand():
    for path in (ROOT / "docs").glob("*.md"):
        text = re.sub(r"(?s)\A---.*?---", "", path.read_text("utf-8"))
        assert not re.search(r"\d", text), path


def test_the_readme_shows_what_the_program_made():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("there is no README.md")
    text = readme.read_text("utf-8")
    tables = [table for table in re.findall(r"(?m)(?:^\|.*\n)+", text)
              if re.search(r"\d", table)]
    made = [path.read_text("utf-8") for path in GENERATED
            if path.suffix == ".md"]
    assert all(table in made for table in tables)
    pictures = re.findall(r"!\[.+?\]\((.+?)\)|<img[^>]* src=\"(.+?)\"", text)
    assert pictures and all((ROOT / (a or b)).is_file() for a, b in pictures)


def test_no_notebook_is_committed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True,
                            capture_output=True).stdout
    assert ".ipynb" not in listed and "\nsite/" not in listed


def test_the_page_is_light_and_needs_no_script(site, anatomy):
    page = (site / "anatomy/index.html").read_bytes()
    assert len(gzip.compress(page, mtime=0)) < 250_000
    assert not anatomy.select("[hidden], noscript")
    words = flat(anatomy.get_text())
    for cell in BOOK:
        if cell.cell_type == "markdown":
            last = re.findall(r"[A-Za-z]+ [A-Za-z]+", cell.source)[-1:]
            assert all(pair in words for pair in last), cell.source


# What only a browser can tell.

@pytest.fixture(scope="session")
def chromium(site):
    if not (browser.DRIVER and browser.CHROME):
        pytest.skip("no chromium and chromedriver here")
    with browser.Browser() as window:
        window.home = browser.serve(site)
        yield window


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("axe")
    if not shutil.which("npm"):
        pytest.skip("no npm here to fetch axe-core with")
    got = subprocess.run(["npm", "install", "--silent", "--no-audit",
                          "--prefix", str(folder), "axe-core@4"],
                         capture_output=True, text=True)
    if got.returncode:
        pytest.skip(f"npm cannot fetch axe-core: {got.stderr[-200:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text("utf-8")


VIEWS = [(page, width, dark) for page in PAGES for width in (390, 1280)
         for dark in (False, True)]


@pytest.mark.parametrize("page, width, dark", VIEWS)
def test_a_page_fits_and_is_accessible(page, width, dark, chromium, axe):
    chromium.open(f"{chromium.home}/{page}", width, dark)
    assert chromium.js("return document.body.dataset.mdColorScheme") == (
        "slate" if dark else "default")
    assert chromium.js("return document.documentElement.scrollWidth") <= width
    unreachable = chromium.js(
        "return [...document.querySelectorAll('article :is(pre, code, .table)')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0"
        " && getComputedStyle(e).overflowX == 'auto').map(e => e.outerHTML)")
    assert unreachable == []
    chromium.js(axe)
    # Pictures are one image to a reader, and one token of code has the colour
    # of all of its kind: looking at each of the thousands would take a minute.
    chromium.js("""
        document.querySelectorAll("article svg").forEach(e => e.innerHTML = "")
        const seen = new Set()
        document.querySelectorAll("article .highlight code span").forEach(e =>
            seen.has(e.className) ? e.replaceWith(...e.childNodes)
                                  : seen.add(e.className))""")
    found = chromium.call("/execute/async", args=[dark], script="""
        const [dark, done] = arguments;
        const rules = dark ? {runOnly: ["color-contrast"]} : {};
        axe.run({resultTypes: ["violations"], ...rules}).then(
            r => done(r.violations
            .filter(v => ["serious", "critical"].includes(v.impact))
            .map(v => [v.id, v.nodes.length, v.nodes[0].html,
                       v.nodes[0].failureSummary])))""")
    assert found == []


def test_nothing_is_fetched_from_elsewhere(chromium):
    chromium.requests()
    for page in PAGES:
        chromium.open(f"{chromium.home}/{page}")
        paper, ink = colours(chromium)
        chromium.js("document.querySelector('label[for^=__palette]"
                    ":not([hidden])').click()")
        chromium.wait("return document.body.dataset.mdColorScheme == 'slate'")
        assert colours(chromium) != (paper, ink), "the theme was not switched"
        search(chromium, "gradient")
    asked = chromium.requests()
    assert asked and [url for url in asked if not url.startswith(
        (chromium.home, "data:", "blob:"))] == []


def colours(chromium):
    """The colour of the page and, if there is one, of a picture's ink."""
    return tuple(chromium.js(
        "const s = document.querySelector('article svg[role=img]');"
        "return [getComputedStyle(document.body).backgroundColor,"
        "        s ? getComputedStyle(s).color : '']"))


def search(chromium, words):
    """The addresses found for words, best first."""
    chromium.js("const q = document.querySelector('input.md-search__input');"
                "document.getElementById('__search').checked = true;"
                "q.focus(); q.value = arguments[0];"
                "q.dispatchEvent(new Event('keyup', {bubbles: true}));"
                "q.dispatchEvent(new Event('input', {bubbles: true}))", words)
    return chromium.wait("return [...document.querySelectorAll("
                         "'.md-search-result__link')].map(a => a.href)")


@pytest.mark.parametrize("words", ["unbroadcast", "np.bincount",
                                   "bias correction"])
def test_search_finds_the_right_heading(words, chromium, anatomy):
    sections, heading = {}, ""
    for tag in anatomy.find_all(True, recursive=False):
        heading = tag["id"] if tag.name in ("h1", "h2", "h3") else heading
        sections[heading] = sections.get(heading, "") + tag.get_text()
    right = {heading for heading, text in sections.items()
             if words in flat(text).lower()}
    if not right:
        pytest.skip(f"anatomy.py does not speak of {words}")
    chromium.open(f"{chromium.home}/")
    found = [unquote(url.split("?")[0].split("/anatomy/")[1] + "#" +
                     urlsplit(url).fragment).lstrip("#")
             for url in search(chromium, words) if "/anatomy/" in url]
    found = [heading for heading in found if heading]       # not the page itself
    assert found and found[0] in right, (found, right)


def test_the_story_reads_without_scripts(chromium):
    chromium.cdp("Emulation.setScriptExecutionDisabled", value=True)
    chromium.open(f"{chromium.home}/anatomy/", 390)
    try:
        text = chromium.cdp("Runtime.evaluate", expression=(
            "document.querySelector('article').innerText"))["result"]["value"]
    finally:
        chromium.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert all(chapter in text for chapter in CHAPTERS)
