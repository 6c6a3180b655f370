"""The site: built as a person builds it, read as a stranger reads it."""
import base64
import gzip
import io
import os
import re
import shutil
import subprocess
import warnings
from html import unescape
from unittest import mock
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from xml.etree import ElementTree

import browser
import jupytext
import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from mkdocs.commands.build import build
from mkdocs.config import load_config
from nbclient.exceptions import CellExecutionError

from anatomy import BREAKAGES, NUMBERS, PROGRAMS, REASONS
from conftest import ROOT, SOURCE, copied, load

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
    cells = [cell for cell in jupytext.read(site / "anatomy/anatomy.ipynb").cells if cell.cell_type == "code"]
    shown = anatomy.select(".highlight")
    assert len(shown) == len(cells)
    for cell, code in zip(cells, shown):
        assert code.get_text().strip() == cell.source.strip()
        below = code.find_next_sibling(True)
        if "fold" in cell.metadata.get("tags", []) and code.parent.name == "details":     # code alone is folded
            below = code.parent.find_next_sibling(True)
        if "@breakage(" in cell.source:                 # what it says stands above its code
            below = code.parent.find_previous_sibling(True)
        assert bool(cell.outputs) == (below is not None and "outputs" in below.get("class", [])), cell.source
        for output in cell.outputs:
            assert output.get("name") != "stderr", output
            if output.output_type == "stream":
                assert flat(output.text) in flat(below.get_text())
            else:
                assert below.select_one(f'svg[aria-label="{output.data["text/plain"]}"]')
        if re.search(r'wanted\("(?s:.*)\n +(print|table|picture)\(', cell.source):
            assert cell.outputs, cell.source


def test_no_output_is_only_the_name_of_its_chapter(anatomy):
    for output in anatomy.select(".outputs"):
        assert not re.match(r"\s*--- \w+ ---", output.get_text())


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
            pages["anatomy/index.html"].select(".outputs figure > svg")}
    assert all(len(alt) > 40 for alt in said), sorted(said, key=len)[:3]
    assert said == {unescape(re.search('aria-label="(.*?)"', path.read_text(
        "utf-8"))[1]) for path in GENERATED if path.suffix == ".svg"}, (
        "docs/generated is not what anatomy.py draws: run make figures")


def test_pictures_can_be_read_on_a_phone():
    for path in GENERATED:
        if path.suffix == ".svg":
            width = float(re.search(r'viewBox="0 0 (\S+)', path.read_text())[1])
            assert 9 * 358 / width > 8.5, f"{path.name}: letters of {width}"


def test_pictures_are_themed_with_real_text():
    for path in GENERATED:
        if path.suffix == ".svg":
            svg = path.read_text("utf-8")
            assert "<text" in svg and "<tspan" not in svg and "DejaVuSans-" not in svg, path
            assert "#000" not in svg and "black" not in svg and "#fff" not in svg, path


PICTURES = load("pictures")


def points_of(path):
    """The corners of a path that walks in steps."""
    x = y = 0
    start, found = (0, 0), []
    for command, numbers in re.findall("([mlcqz])([^mlcqz]*)", path):
        values = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", numbers)]
        width = {"m": 2, "l": 2, "c": 6, "q": 4, "z": 1}[command]
        for at in range(0, len(values), width):
            x, y = x + values[at + width - 2], y + values[at + width - 1]
            found.append((x, y))
            start = (x, y) if command == "m" else start
        if command == "z":
            x, y = start
    return found


@pytest.mark.parametrize("corners, kept", [
    ([(0, 0), (0, 1), (0, 2.5), (0, 4), (3, 4), (5, 4)], [0, 3, 5]),
    ([(0, 0), (1, 1), (2, 2), (5, 5), (5, 4)], [0, 3, 4]),
    ([(0, 0), (0, 5), (0, 2)], [0, 1, 2]),
    ([(0, 0), (7, 0), (3, 0), (3, 1)], [0, 1, 2, 3]),
])
def test_a_path_loses_what_lies_inside_of_a_line_and_no_peak(corners, kept):
    path = "M " + " L ".join(f"{x} {y} \n" for x, y in corners)
    assert points_of(PICTURES.shorter(path)) == [corners[i] for i in kept]


def test_a_path_in_steps_leads_where_it_led():
    """Rounding does not add up, a curve ends where it ended, and behind a z the path goes on from its start."""
    corners = [(k * 0.333, k % 2 * 9.77 + k % 3) for k in range(400)]
    found = points_of(PICTURES.shorter("M " + " L ".join(f"{x} {y}" for x, y in corners)))
    assert len(found) == len(corners)
    assert all(abs(a - b) < 0.0501 for one, other in zip(found, corners) for a, b in zip(one, other))
    curve = "M 10 10 C 11 12 13 14 15 16 Q 1 2 3 4 L 5 7 z M 20 20 L 21 25 C 1 1 2 2 30 30 C 0 0 1 1 9 9 z"
    ends = [(10, 10), (15, 16), (3, 4), (5, 7), (20, 20), (21, 25), (30, 30), (9, 9)]
    assert np.allclose(points_of(PICTURES.shorter(curve)), ends, atol=1e-9)
    assert PICTURES.shorter("M 1 1 C 2 2 3 3 4 4") == "m1 1c1 1 2 2 3 3"


def test_a_series_of_marks_keeps_each_of_them_and_its_colour():
    """A picture of 4 marks on a line, 3 others, and axes."""
    from matplotlib.figure import Figure
    figure = Figure((3, 3))
    axes = figure.subplots()
    axes.plot([1, 2, 3, 4], [5, 5, 5, 5], "o", color="#123456")
    axes.plot([1, 2, 3], [1, 2, 1], "x", color="#654321")
    axes.set(title="a title", xticks=[], yticks=[])
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Title": "four & three <marks>"})
    svg = BeautifulSoup(PICTURES.themed(out.getvalue()), "html.parser").svg
    assert svg["aria-label"] == "four & three <marks>" and svg["role"] == "img"
    series = [path for path in svg.select("path[style]") if "marker: url" in path["style"]]
    assert [len(points_of(path["d"])) for path in series] == [4, 3]
    for path, color in zip(series, ("#123456", "#654321")):
        marker = svg.select_one("#" + re.search(r"url\(#([\w-]+)\)", path["style"])[1])
        assert color in marker.path["style"]


def test_no_id_is_used_twice(pages):
    for name, page in pages.items():
        ids = [tag["id"] for tag in page.find_all(id=True)]
        assert len(ids) == len(set(ids)), name


def test_results_show_everything_in_story_order(pages):
    page = pages["results/index.html"].article
    written = re.findall(r"(?m)^\{\{ (\S+) \}\}$", (ROOT / "docs/results.md").read_text("utf-8"))
    made = re.findall(r'(?:table|picture|race_table)\("(\w+)"', (ROOT / "anatomy.py").read_text("utf-8"))
    assert [name.split(".")[0] for name in written if "." in name] == made
    assert sorted(name for name in written if "." in name) == [path.name for path in GENERATED]
    for path in GENERATED:
        text = path.read_text("utf-8")
        if path.suffix == ".svg":
            alt = unescape(re.search('aria-label="(.*?)"', text)[1])
            assert len(page.select(f'svg[aria-label="{alt}"]')) == 1, path
        else:
            cells = re.sub(r"\\\||\||---:?", " ", text.replace("\\", ""))
            assert flat(cells) in flat(page.get_text(" ")), path
    for table in page.select(".table"):
        assert table.find_previous_sibling(True).name == "p" and table.find_previous_sibling(True).strong
    titles = [h.get_text().rstrip("¶") for h in page.select("h2")]
    assert titles == [title for title in CHAPTERS if title in titles]
    # What stands below a heading is made in its chapter.
    for part in written:
        if "." not in part:
            chapter = part
        else:
            at = re.search(f'(?:table|picture|race_table)\\("{part.split(".")[0]}"', SOURCE).start()
            assert re.findall(r'wanted\("(\w+)"', SOURCE[:at])[-1] == chapter


def test_no_number_on_the_other_pages_is_typed_by_hand():
    for path in (ROOT / "docs").glob("*.md"):
        text = re.sub(r"(?s)\A---.*?---|\]\(.*?\)", "", path.read_text("utf-8"))
        assert not re.search(r"\d", text), path


def test_the_readme_shows_what_the_program_made():
    readme = ROOT / "README.md"
    text = readme.read_text("utf-8")
    tables = [table for table in re.findall(r"(?m)(?:^\|.*\n)+", text)
              if re.search(r"\d", table)]
    made = [path.read_text("utf-8") for path in GENERATED
            if path.suffix == ".md"]
    assert tables and all(table in made for table in tables)
    pictures = re.findall(r"!\[.+?\]\((.+?)\)|<img[^>]* src=\"(.+?)\"", text)
    assert pictures and all((ROOT / (a or b)).is_file() for a, b in pictures)


def test_the_tables_committed_are_those_that_the_program_prints(site):
    """To the last character, on every machine; pictures differ in digits, but not in what they say."""
    made = {path.name: path.read_text("utf-8") for path in site.parent.glob(".cache/site/*/*")
            if path.suffix in (".md", ".svg")}
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
CHAPTERS = ("one"
            "").split()
# %% [markdown]
# ## 1. A chapter
# %%
def wanted(chapter): return True
if wanted("one"):
    Path(OUT, "number.md").write_text("| n |\\n| --- |\\n| NUMBER |\\n")
    print("number.md", "number")
"""
NUMBER = "docs/index.md", "# A page\n\n{{ number.md }}\n"
RESULT = "docs/results.md", "# Results\n\n{{ one }}\n\n{{ number.md }}\n"


def draft(folder, *changed, **addresses):
    """Build a small site in this process, and return its pages by their paths; what ends the build is raised."""
    told = dict(copied(folder, [NUMBER, RESULT, *changed]), **addresses)
    with mock.patch.dict(os.environ, told), warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of the packages that run a notebook
        config = load_config(str(folder / "mkdocs.yml"), strict=True)
        build(config)
    return {name: BeautifulSoup((folder / "site" / name).read_text("utf-8"), "html.parser")
            for name in ("index.html", "anatomy/index.html", "results/index.html")}


def story(number):
    return "anatomy.py", STORY.replace("NUMBER", number)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A folder with a small story, built by somebody who has told the two addresses, and its pages."""
    folder = tmp_path_factory.mktemp("published")
    by_hand = "docs/generated/number.md", "| n |\n| --- |\n| 1111 |\n"
    return folder, draft(folder, story("4242"), by_hand, SITE_URL="https://example.org/book/",
                         REPO_URL="https://github.com/somebody/some-book")


def test_the_pages_show_the_run_that_they_are_built_from(published, tmp_path):
    """Not what was committed once, a table altered by hand, nor what another text has printed."""
    folder, pages = published
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for number, pages in ("4242", pages), ("4343", draft(tmp_path, story("4343"))):
        assert {number} == {number for page in ("index.html", "results/index.html")
                            for number in re.findall(r"\b(1111|4242|4343)\b", pages[page].article.get_text())}
    assert not (folder / "site/generated").exists()


def test_a_notebook_that_was_cut_off_is_made_again(published, tmp_path):
    """A build that was stopped, or a full disk, breaks no later build."""
    shutil.copytree(published[0], tmp_path, dirs_exist_ok=True)
    [kept] = tmp_path.glob(".cache/site/*/run.ipynb")
    whole = kept.read_bytes()
    assert b"number.md number" in whole and len(whole) > 1000
    kept.write_bytes(whole[:40])
    draft(tmp_path, story("4242"))
    assert b"number.md number" in kept.read_bytes()


def test_an_assertion_that_fails_ends_the_build(tmp_path):
    with pytest.raises(CellExecutionError, match=r"assert 1 \+ 1 == 3"):
        draft(tmp_path, ("anatomy.py", "# %%\nassert 1 + 1 == 3\n"))
    assert not (tmp_path / "site/anatomy/index.html").exists()


def test_a_table_that_is_not_there_ends_the_build(published, tmp_path):
    shutil.copytree(published[0] / ".cache", tmp_path / ".cache")
    with pytest.raises(FileNotFoundError, match="no-such-table.md"):
        draft(tmp_path, story("4242"), ("docs/index.md", "# A page\n\n{{ no-such-table.md }}\n"))
    assert not (tmp_path / "site/anatomy/index.html").exists()


def test_no_notebook_is_committed():
    if not (ROOT / ".git").exists():
        pytest.skip("no clone, so nothing is committed")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True, check=True).stdout.split("\n")
    assert "anatomy.py" in listed
    assert not [name for name in listed if name.endswith(".ipynb") or name.startswith("site/")]


def test_the_pages_are_light(site):
    for path in site.rglob("*.html"):
        page = path.read_bytes()
        assert len(page) < 700_000 and len(gzip.compress(page, mtime=0)) < 200_000, path


def test_the_page_needs_no_script(anatomy):
    assert not anatomy.select("[hidden], noscript")
    words = flat(anatomy.get_text())
    for cell in BOOK:
        if cell.cell_type == "markdown":
            last = re.findall(r"[A-Za-z]+ [A-Za-z]+", cell.source)[-1:]
            assert all(pair in words for pair in last), cell.source


def test_each_question_stands_in_the_open_and_its_answer_in_a_fold(anatomy):
    open_text = BeautifulSoup(str(anatomy), "html.parser")
    assert not open_text.select("details[open]")
    for fold in open_text.select("details:not(details details)"):
        fold.decompose()
    said = flat(open_text.get_text())
    for name, told in BREAKAGES.items():
        assert flat(f"Predict: {name}. {told.question}") in said
        for text in told.reason, told.caught, told.repair:
            assert flat(text) not in said
        [fold] = [fold for fold in anatomy.select("details") if fold.summary.get_text().startswith(f"{name}: ")]
        assert [part.get("class") for part in fold.find_all(True, recursive=False)] == [None, ["outputs"], ["fold"]]
        assert f'@breakage("{name}")' in fold.get_text() and flat(told.reason) in flat(fold.get_text())
        question = anatomy.find(id=name)
        assert question.find_next("details") is fold
    for name, exercise in NUMBERS.items():
        box = anatomy.find(id=name)
        assert flat(box.p.get_text()) == f"{name} {exercise.question}" and f"{name} {exercise.question}" in said
        hint, answer = box.select("details")
        # One hint is printed, to show what `check` says.
        assert hint.p.get_text() == exercise.hint and (exercise.hint not in said or name == "nudge.1")
        right = np.asarray(exercise.function())
        given = [{"True": 1, "False": 0}.get(word) or float(word != "False" and word)
                 for word in answer["data-right"].split(", ")]
        assert np.allclose(given, right.ravel(), rtol=1e-12) and len(given) == right.size
        assert answer["data-exact"] == str(right.dtype.kind != "f").lower()
        assert REASONS[name] in answer.p.get_text() and REASONS[name] not in said
    for name, exercise in PROGRAMS.items():
        heading = anatomy.find("h4", id=re.compile(name.replace(".", "")))
        assert heading.find_next("details").p.get_text() == exercise.hint and exercise.hint not in said
        [solution] = [fold for fold in anatomy.select("details")
                      if fold.summary.get_text().startswith(f"A solution of {name}: ")]
        assert solution.p and solution.code and flat(solution.p.get_text()) not in said


def test_chapters_papers_and_sources_are_links(anatomy):
    chapters = {h.get_text().split(".")[0]: "#" + h["id"] for h in anatomy.select("h2")}
    links = [a for a in anatomy.select("p > a, li > a") if re.search(r"^(chapters? )?\d+$", flat(a.get_text()).lower())]
    assert len(links) > 60
    for a in links:
        assert a["href"] == chapters[re.search(r"\d+", a.get_text())[0]]
    papers = {a["href"] for a in anatomy.select('a[href*="arxiv.org"]')}
    assert papers == {f"https://arxiv.org/abs/{number}" for number in re.findall(r"arXiv[\s#]+(\d{4}\.\d{5})", SOURCE)}
    for code in anatomy.select("p code"):
        if re.search(r"\w/.*\.(py|cpp|rst)$", code.get_text()):
            assert code.a and code.a["href"].endswith("/blob/HEAD/" + code.get_text()), code


def test_every_picture_has_a_caption(pages):
    for name in "anatomy/index.html", "results/index.html", "index.html":
        for svg in pages[name].article.select("svg[role=img]"):
            assert svg.parent.name == "figure"
            assert svg.parent.figcaption.get_text() == svg["aria-label"]


def test_the_notebook_shows_its_pictures_before_it_is_run(site):
    """An img survives where nobody trusts the notebook yet, and plain text has its words."""
    book = nbformat.read(site / "anatomy/anatomy.ipynb", as_version=4)
    nbformat.validate(book)
    pictures = [output.data for cell in book.cells for output in cell.get("outputs", []) if "data" in output]
    assert len(pictures) == sum(path.suffix == ".svg" for path in GENERATED)
    for data in pictures:
        img = BeautifulSoup(data["text/html"], "html.parser").img
        assert set(data) == {"text/html", "text/plain"} and img["alt"] == data["text/plain"]
        svg = base64.b64decode(img["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert ElementTree.fromstring(svg).get("aria-label") == img["alt"] and "background:#fff" in svg
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        hidden = cell.metadata.get("jupyter", {})
        assert bool(hidden.get("source_hidden")) == bool(tags) and bool(hidden.get("outputs_hidden")) == ("answer" in tags)
    told = " ".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert all(name in told for name in BREAKAGES) and all(f"<strong>{name}</strong>" in told for name in NUMBERS)


def test_every_page_is_described_once(pages):
    titles = {}
    for name, page in pages.items():
        titles[name] = page.title.get_text(strip=True)
        for key in ("meta[name=description]", 'meta[property="og:title"]', 'meta[property="og:description"]',
                    'meta[property="og:type"]', 'meta[name="twitter:card"]', "title"):
            assert len(page.head.select(key)) == 1, (name, key)
        assert titles[name].count("Anatomy of a gradient") == 1
        if name != "404.html":
            assert page.head.select_one('meta[property="og:title"]')["content"] == titles[name]
    described = [page.head.select_one("meta[name=description]")["content"] for name, page in pages.items()
                 if name != "404.html"]
    assert len(set(described)) == len(described) and len(set(titles.values())) >= 4


def test_a_lost_reader_finds_back(pages):
    page = pages["404.html"]
    links = {a.get_text() for a in page.article.select("a[href]")}
    assert links == {"Home", "The anatomy", "Results", "Paste it"}
    for name, dialog in [(name, page.select_one("[role=dialog]")) for name, page in pages.items()]:
        assert dialog["aria-label"] == "Search", name


def test_addresses_give_ways_in(published):
    index, story, _ = published[1].values()
    github = "https://github.com/somebody/some-book"
    for page, file in (index, "docs/index.md"), (story, "anatomy.py"):
        links = {a["href"] for a in page.find_all("a", href=True)}
        assert github in {link.rstrip("/") for link in links} and f"{github}/edit/HEAD/{file}" in links
    colab = "https://colab.research.google.com/github/somebody/some-book/blob/gh-pages/anatomy/anatomy.ipynb"
    assert story.article.select_one(f'a[href="{colab}"]')
    assert story.head.select_one('meta[property="og:url"]')["content"] == "https://example.org/book/anatomy/"


def test_without_addresses_no_link_is_dead(pages):
    for name, page in pages.items():
        assert not page.select('a[href*="colab"], a[href*="/edit/"], .md-source, meta[property="og:url"]'), name


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
    (paper, ink), (dark_paper, light_ink) = look["light"], look["dark"]
    assert paper != dark_paper and (ink != light_ink or ink == light_ink == "")


def test_nothing_is_fetched_from_elsewhere(seen):
    asked = seen["requests"]
    assert [url for url in asked if not url.startswith(
        (seen.home, "data:", "blob:"))] == []
    for page in browser.PAGES:
        assert asked.count(f"{seen.home}/{page}") >= 2


@pytest.mark.parametrize("words", browser.WORDS)
def test_search_finds_first_where_a_word_is_introduced(words, seen, anatomy):
    chapters, number = {}, 0
    for tag in anatomy.select("h1[id], h2[id], h3[id], h4[id]"):
        number += tag.name == "h2"
        chapters[tag["id"]] = number
    found = [unquote(urlsplit(url).fragment) for url in seen["search"][words] if "/anatomy/" in url]
    found = [heading for heading in found if heading]       # not the page itself
    assert found and chapters[found[0]] == browser.WORDS[words], found


def test_an_answer_is_judged_in_the_page(seen):
    said = seen["anatomy/", False]["answers"]
    assert sorted(said) == sorted(NUMBERS)
    for name, (right, close, wrong, more, words, nothing, comma) in said.items():
        assert (right, close, wrong) == ("\u2713 Right.", "\u2713 Right.", "Not yet."), (name, said[name])
        assert ("with a point" in comma) and "with a point" not in more
        assert more.startswith("Not yet: ") and more.endswith("wanted.")
        assert words.startswith("A number is wanted") and nothing == words


def test_code_can_be_copied_on_a_phone_and_nothing_lies_on_it(seen):
    buttons = seen["anatomy/", False][390]["buttons"]
    assert len(buttons) > 50
    for opacity, room in buttons:
        assert opacity == "1" and room >= 0


@pytest.mark.parametrize("page", ["anatomy/", "paste/"])
def test_on_paper_nothing_is_cut_and_answers_are_closed(page, seen):
    assert seen[page, False]["paper"] == {"open": 0, "cut": 0, "forms": 0}


def test_the_address_follows_the_chapter(seen):
    assert seen["anatomy/", True]["tracking"].startswith("#5-")


def test_the_story_reads_without_scripts(seen):
    assert all(chapter in seen["plain"] for chapter in CHAPTERS)
