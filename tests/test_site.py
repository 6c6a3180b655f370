"""The site: built as a person builds it, read as a stranger reads it."""
import gzip
import importlib.util
import re
import subprocess
from html import unescape
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import browser
import jupytext
import pytest
from bs4 import BeautifulSoup

from conftest import ROOT, mkdocs

BOOK = jupytext.read(ROOT / "anatomy.py", fmt="py:percent").cells
CHAPTERS = re.findall("(?m)^# ## (.+)", (ROOT / "anatomy.py").read_text("utf-8"))
GENERATED = sorted((ROOT / "docs/generated").glob("*.*"))


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
    run = mkdocs(tmp_path, [("anatomy.py", text), ("docs/index.md", "# A page\n")])
    assert run.returncode != 0 and wanted in run.stdout + run.stderr
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
    ids = {name: {tag["id"] for tag in page.find_all(id=True)}
           for name, page in pages.items()}
    for name, page in pages.items():
        here = "/" + name
        for tag in page.find_all(href=True) + page.find_all(src=True):
            target = tag.get("href") or tag.get("src")
            if urlsplit(target).scheme in ("https", "http", "mailto", "data"):
                continue
            path, anchor = urldefrag(urljoin(here, target))
            path = unquote(path).lstrip("/")
            if not path or path.endswith("/"):
                path += "index.html"
            assert (site / path).is_file(), (name, target)
            if anchor and path in pages:
                assert unquote(anchor) in ids[path] or (
                    tag.name == "use"), (name, target)


def test_no_page_asks_another_host_for_anything(site, pages):
    elsewhere = re.compile(r"^\s*(https?:)?//")
    for name, page in pages.items():
        for tag in (page.find_all(src=True) + page.find_all(srcset=True)
                    + page.find_all(["link", "use", "image"])):
            for attribute in ("src", "srcset", "href", "xlink:href"):
                assert not elsewhere.match(tag.get(attribute, "")), (name, tag)
        styles = [tag.get_text() for tag in page.find_all("style")]
        styles += [tag["style"] for tag in page.find_all(style=True)]
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
        levels = [int(h.name[1]) for h in page.article.find_all(["h1", "h2", "h3"])]
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
        for picture in page.article.find_all(["img", "svg"]):
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


def test_a_path_loses_what_lies_inside_of_a_line_and_no_peak():
    found = importlib.util.spec_from_file_location("pictures", ROOT / "docs/pictures.py")
    pictures = importlib.util.module_from_spec(found)
    found.loader.exec_module(pictures)

    def kept(*points):
        run = "".join(f"L {x} {y} " for x, y in points)
        return [tuple(map(float, point)) for point in re.findall(r"L (\S+) (\S+)", pictures.straightened([run]))]

    assert kept((0, 0), (0, 1), (0, 2.5), (0, 4), (3, 4), (5, 4)) == [(0, 0), (0, 4), (5, 4)]
    for bent in ([(0, 0), (0, 5), (0, 2)], [(0, 0), (7, 0), (3, 0), (3, 1)], [(0, 0), (1, 1), (2, 2)]):
        assert kept(*bent) == bent


def test_no_id_is_used_twice(pages):
    for name, page in pages.items():
        ids = [tag["id"] for tag in page.find_all(id=True)]
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


def test_the_tables_committed_are_those_that_the_program_prints(stories):
    """To the last character, on every machine; pictures differ in digits, but not in what they say."""
    made = {path.name: path.read_text("utf-8") for path in stories["plain"] and stories.out.iterdir()}
    kept = {path.name: path.read_text("utf-8") for path in GENERATED}
    assert made.keys() == kept.keys(), "run make figures"
    for name in made:
        if name.endswith(".md"):
            assert kept[name] == made[name], f"{name} is not what anatomy.py prints: run make figures"
        else:
            says = re.search("(?s)<title>(.*?)</title>", made[name])[1]
            assert unescape(re.search('aria-label="(.*?)"', kept[name])[1]) == unescape(says), f"{name}: run make figures"


STORY = """# %% [markdown]
# # A story
# %%
from pathlib import Path
ASKED, OUT = ["all"], None
# %% [markdown]
# ## 1. A chapter
# %%
def wanted(chapter): return True
if wanted("one"):
    Path(OUT, "number.md").write_text("| n |\\n| --- |\\n| NUMBER |\\n")
    print("number.md", "number")
"""
NUMBER = "docs/index.md", "# A page\n\n{{ number.md }}\n"


def test_the_pages_show_the_run_that_they_are_built_from(tmp_path):
    """Not what was committed once: a table altered by hand is on no page."""
    by_hand = "docs/generated/number.md", "| n |\n| --- |\n| 1111 |\n"
    for number in "4242", "4343":
        run = mkdocs(tmp_path, [("anatomy.py", STORY.replace("NUMBER", number)), NUMBER, by_hand])
        assert run.returncode == 0, run.stdout + run.stderr
        for page in "index.html", "results/index.html":
            text = (tmp_path / "site" / page).read_text("utf-8")
            assert number in text and "1111" not in text
        assert not (tmp_path / "site/generated").exists()


def test_a_notebook_that_was_cut_off_is_made_again(tmp_path):
    """A build that was stopped, or a full disk, breaks no later build."""
    for left in "nothing", "a part":
        run = mkdocs(tmp_path, [("anatomy.py", STORY), NUMBER])
        assert run.returncode == 0, run.stdout + run.stderr
        [kept] = tmp_path.glob(".cache/site/*/anatomy.ipynb")
        whole = kept.read_bytes()
        assert b"number.md number" in whole and len(whole) > 1000
        kept.write_bytes(whole[:40])


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

@pytest.fixture
def seen(looks):
    """What a browser saw, by the name of a look."""
    if not (browser.DRIVER and browser.CHROME):
        pytest.skip("no chromium and chromedriver here")
    return looks


VIEWS = [(page, width, dark) for page in browser.PAGES
         for dark in (False, True) for width in browser.WIDTHS]


@pytest.mark.parametrize("page, width, dark", VIEWS)
def test_a_page_fits_and_is_accessible(page, width, dark, seen):
    view = seen[page, dark][width]
    assert view["scheme"] == ("slate" if dark else "default")
    assert view["width"] <= width
    assert view["out of reach"] == []
    if "axe" not in view:
        pytest.skip("no npm here that fetches axe-core")
    assert view["axe"] == []


@pytest.mark.parametrize("page", browser.PAGES)
def test_the_theme_can_be_switched(page, seen):
    look = seen[page, False]
    assert look["light"] != look["dark"]


def test_nothing_is_fetched_from_elsewhere(seen):
    asked = seen["requests"]
    assert [url for url in asked if not url.startswith(
        (seen.home, "data:", "blob:"))] == []
    for page in browser.PAGES:
        assert asked.count(f"{seen.home}/{page}") >= 2


@pytest.mark.parametrize("words", browser.WORDS)
def test_search_finds_the_right_heading(words, seen, anatomy):
    sections, heading = {}, ""
    for tag in anatomy.find_all(True, recursive=False):
        heading = tag["id"] if tag.name in ("h1", "h2", "h3") else heading
        sections[heading] = sections.get(heading, "") + tag.get_text()
    right = {heading for heading, text in sections.items()
             if words in flat(text).lower()}
    if not right:
        pytest.skip(f"anatomy.py does not speak of {words}")
    found = [unquote(url.split("?")[0].split("/anatomy/")[1] + "#" +
                     urlsplit(url).fragment).lstrip("#")
             for url in seen["search"][words] if "/anatomy/" in url]
    found = [heading for heading in found if heading]       # not the page itself
    assert found and found[0] in right, (found, right)


def test_the_story_reads_without_scripts(seen):
    assert all(chapter in seen["plain"] for chapter in CHAPTERS)
