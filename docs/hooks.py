"""MkDocs hooks: run ../anatomy.py once, and publish what that run says and draws.

on_files          anatomy.py -> an executed notebook, which mkdocs-jupyter renders,
                  and its pictures and tables, for the other pages
on_page_markdown  {{ source }}, {{ results }}, {{ versions }}, {{ NAME.svg }}, {{ NAME.md }}
on_page_content   JupyterLab's clothes off, Material's on
"""
import html, platform, re, shutil, sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
import jupytext, nbclient, nbformat
from bs4 import BeautifulSoup
from markdown.extensions.toc import nest_toc_tokens
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

sys.path.insert(0, str(Path(__file__).parent))
from pictures import themed

ROOT = Path(__file__).parents[1]
VERSIONS = f"Python {platform.python_version()}, numpy {version('numpy')}, matplotlib {version('matplotlib')}"
LINK = '<p><a href="anatomy.ipynb" download>Download this page as a notebook</a></p>'
BOXES = '[class*="jp-"], .jupyter-wrapper, .CodeMirror, .zeroclipboard-container'

def source():
    return (ROOT / "anatomy.py").read_text("utf-8")

def notebook():
    """anatomy.py as a notebook not yet run."""
    return jupytext.reads(source(), "py:percent")

def home():
    """Where the run of this very text with these very libraries is kept."""
    return ROOT / ".cache/site" / sha256((source() + VERSIONS).encode()).hexdigest()[:16]

def is_whole(path):
    """Is there a notebook that somebody finished writing?"""
    try:
        return bool(nbformat.read(path, as_version=4).cells)
    except (OSError, ValueError, AttributeError):
        return False

def tell(folder):
    """Run the story: its pictures and tables into the folder, and last of all the notebook."""
    book = notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    for i, cell in enumerate(book.cells):
        cell["id"] = f"cell-{i}"        # jupytext's are random, and builds shall be equal
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    gate = next((i for i, cell in enumerate(book.cells) if "ASKED, OUT = " in cell.source), -1)
    book.cells.insert(gate + 1, nbformat.v4.new_code_cell(f"import pathlib; OUT = pathlib.Path({str(folder)!r})"))
    nbclient.execute(book, cwd=str(ROOT), timeout=None, record_timing=False,
                     coalesce_streams=True)     # a failing assertion ends the build
    del book.cells[gate + 1]
    for number, cell in enumerate((c for c in book.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        for output in cell.outputs:
            if "image/svg+xml" in output.get("data", {}):       # as HTML it stands in the page itself
                output.data = {"text/html": themed(output.data["image/svg+xml"])}
    jupytext.write(book, folder / "part.ipynb")
    (folder / "part.ipynb").replace(folder / "anatomy.ipynb")

@event_priority(100)    # before mkdocs-jupyter looks for notebooks
def on_files(files, config):
    """Add the source and the notebook it becomes, run again if it or a library changed."""
    if not is_whole(home() / "anatomy.ipynb"):
        tell(home())
    files.append(File("anatomy.ipynb", str(home()), config.site_dir, config.use_directory_urls))
    files.append(File.generated(config, "anatomy.py", content=source()))
    return files

def generated(name):
    """The picture or table of that name, as this run made it, as part of a page."""
    text = (home() / name).read_text("utf-8")
    if name.endswith(".md"):
        wide = ' tabindex="0"' if max(map(len, text.split("\n"))) > 45 else ""
        text = re.sub(r"(?<!\\)[*_]", r"\\\g<0>", text).replace("<", "&lt;")     # __add__ is not bold
        return f'<div class="table"{wide} markdown>\n\n{text}\n</div>'
    svg = themed(text)
    alt = re.search('aria-label="(.*?)"', svg)[1]
    return f'<figure>{svg}<figcaption aria-hidden="true">{alt}</figcaption></figure>'

def results():
    """Every picture and table in story order, then the command and the cell that make it."""
    book, signatures = notebook(), re.findall(r"(?ms)^def ((\w+)\(.*?\)):$", source())
    page, title, told, shown = [], "", "", []
    for cell in book.cells:
        if cell.source.startswith("## "): title, told = cell.source.split("\n")[0], ""
        told += cell.source
        # A cell that says wanted("spiral") makes the files whose names stand in it in quotes.
        chapter = re.search(r'wanted\("(\w+)"', cell.source)
        names = re.findall(r'(?<!wanted\()f?"(\w{3}[\w{}()]*)"', cell.source) if chapter else ()
        made = [file.name for name in dict.fromkeys(names) for file in sorted(home().glob(
            re.sub("{.*}", "*", name) + ".*")) if file.name not in shown]
        if made:
            settings = [f"# {' '.join(call.split())}" for call, name in signatures
                        if "=" in call and f" {name}(" in told]
            page += [title] * (title not in page) + [*map(generated, made)] + ["\n".join([
                f'<details class="fold" markdown><summary>{", ".join(made)}: '
                f'python anatomy.py {chapter[1]} --out docs/generated</summary>\n',
                "```python", *settings, cell.source, "```", "</details>"])]
            shown += made
    return "\n\n".join(page)

def on_page_markdown(markdown, page, config, files):
    words = {"source": source, "results": results, "versions": lambda: VERSIONS}
    return re.sub(r"\{\{ (\S+) \}\}", lambda m: words.get(m[1], lambda: generated(m[1]))(), markdown)

def undress(page_html):
    """mkdocs-jupyter's page as Material would have written it, and the headings in it."""
    kept = []       # pictures and lines of code: nine tenths of the page, parsed by nobody
    def keep(match):
        kept.append(match[0])
        return f"\ue000{len(kept) - 1}\ue000"
    def put_back(text):
        return re.sub("\ue000(\\d+)\ue000", lambda m: kept[int(m[1])], text)
    soup = BeautifulSoup(re.sub("(?s)<svg [^>]*role=.*?</svg>|(?<=<pre>).*?(?=</pre>)", keep, page_html), "html.parser")
    for tag in soup.select("style, script, clipboard-copy, .clipboard-copy-txt, .celltoolbar"):
        tag.decompose()
    for pre in soup.select(".highlight-ipynb > pre"):       # as Material renders a fenced block
        pre.parent["class"], pre.name = "highlight", "code"
        pre.wrap(soup.new_tag("pre"))
    for area in soup.select(".jp-OutputArea"):
        area.attrs = {"class": "outputs"}
    for part in soup.select(".celltag_fold[id] .highlight, .celltag_answers[id] .outputs"):
        code = re.sub("<.*?>", "", put_back(part.get_text()))
        names = re.findall(r"(?m)^(?:def|class) (\w+)", code)
        chapter = part.find_previous(["h1", "h2"]).get_text()
        section = part.find_previous(["h1", "h2", "h3"]).get_text()
        if "Exercises" in chapter:      # nudge_1 is asked for as nudge.1
            names = [name.replace("_", ".") for name in names if re.search(r"_\d$", name)] or names
        kind = ("Answers" if not part.code else "Plumbing" if not names else
                "Drawing" if names[0].startswith("draw") else
                "Judges, they tell much of the answers" if "judges" in section else
                "Questions, with solutions" if "Exercises" in chapter else
                "Solutions" if "Answers" in chapter else "Plumbing")
        label = ", ".join(names) or ("the last line of a run" if part.code else "open to read")
        part.wrap(soup.new_tag("details", attrs={"class": "fold"})).insert(
            0, soup.new_tag("summary", string=f"{kind}: {label}"))
    for box in soup.select(BOXES):                          # flat, so that search files it by heading
        box.unwrap()
    soup.h1.insert_after(BeautifulSoup(LINK, "html.parser"))
    return put_back(str(soup)).replace('"anchor-link"', '"headerlink"'), [
        {"level": int(h.name[1]), "id": h["id"], "name": html.escape(h.get_text()[:-1])}
        for h in soup.select("h2[id], h3[id]")]

def on_page_content(page_html, page, config, files):
    if page.file.src_uri == "anatomy.ipynb":
        page_html, headings = undress(page_html)
        page.toc = get_toc(nest_toc_tokens(headings))
    # Names, spaces, dots and brackets take the colour of the code around them: they are half of all marks.
    page_html = re.sub('<span class="[nwpo]">([^<]*)</span>', r"\1", page_html)
    return page_html.replace("<pre>", '<pre tabindex="0">')     # wide code scrolls, by keyboard too

def on_post_page(output, page, config):
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')     # theme's omission
