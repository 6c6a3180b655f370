"""MkDocs hooks: run ../anatomy.py once, and publish what that run says and draws.

on_files          anatomy.py -> an executed notebook, which mkdocs-jupyter renders,
                  and its pictures and tables, for the other pages
on_page_markdown  {{ source }}, {{ versions }}, {{ CHAPTER }}, {{ NAME.svg }}, {{ NAME.md }}
on_page_content   JupyterLab's clothes off, Material's on, which page.py does
on_post_build     to the search, the words that each section introduces
"""
import json, platform, re, shutil, sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
import jupytext, nbclient, nbformat
from markdown.extensions.toc import nest_toc_tokens, slugify
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

sys.path.insert(0, str(Path(__file__).parent))
import questions
from page import lighter, undress
from pictures import embedded, name_of, shown, themed

ROOT = Path(__file__).parents[1]
VERSIONS = f"Python {platform.python_version()}, numpy {version('numpy')}, matplotlib {version('matplotlib')}"
COLAB = "https://colab.research.google.com/github/{}/blob/gh-pages/anatomy/anatomy.ipynb"
WORDS = {}      # of the story, for the search

def source():
    return (ROOT / "anatomy.py").read_text("utf-8")

def notebook():
    """anatomy.py as a notebook not yet run."""
    return jupytext.reads(source(), "py:percent")

def home():
    """Where the run of this very text, in this way, with these very libraries, is kept."""
    way = Path(__file__).read_text("utf-8") + questions.FACTS + VERSIONS
    return ROOT / ".cache/site" / sha256((source() + way).encode()).hexdigest()[:16]

def is_whole(path):
    """Is there a notebook that somebody finished writing?"""
    try:
        return bool(nbformat.read(path, as_version=4).cells)
    except (OSError, ValueError, AttributeError):
        return False

def write(book, path):
    """Write a whole notebook, or none."""
    part = path.with_suffix(".part.ipynb")
    jupytext.write(book, part)
    part.replace(path)

def tell(folder):
    """Run the story: its pictures and tables into the folder, and last of all the notebook."""
    book = notebook()
    book.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3 (ipykernel)"}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # The folder is told behind the cell that reads the command line, and the facts are asked for at the end.
    gate = next((i for i, cell in enumerate(book.cells) if "ASKED, OUT = " in cell.source), -1)
    book.cells.insert(gate + 1, nbformat.v4.new_code_cell(f"import pathlib; OUT = pathlib.Path({str(folder)!r})"))
    book.cells.append(nbformat.v4.new_code_cell(questions.FACTS))
    nbclient.execute(book, cwd=str(ROOT), timeout=None, record_timing=False,
                     coalesce_streams=True)     # a failing assertion ends the build
    del book.cells[gate + 1]
    write(book, folder / "run.ipynb")

def dress(folder):
    """Make the notebook that is read and downloaded out of the one that was run."""
    book = nbformat.read(folder / "run.ipynb", as_version=4)
    facts = json.loads(book.cells.pop().outputs[0].text)
    for number, cell in enumerate((c for c in book.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
        cell.outputs = [output for output in map(fit_to_read, cell.outputs) if output.get("text", "more")]
        if cell.metadata.get("tags"):       # JupyterLab folds what the page does
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": "answer" in cell.metadata["tags"]}
    book.cells = questions.asked(book.cells, facts)
    for i, cell in enumerate(book.cells):
        cell["id"] = f"cell-{i}"        # jupytext's are random, and builds shall be equal
        for key in "cell_marker", "lines_to_next_cell":
            cell.metadata.pop(key, None)
    write(book, folder / "anatomy.ipynb")

def fit_to_read(output):
    """An output without the line that a chapter begins, and with its picture as an image."""
    if "image/svg+xml" in output.get("data", {}):
        svg = themed(output.data["image/svg+xml"])
        output.data = {"text/html": embedded(svg), "text/plain": name_of(svg)}
    if "text" in output:
        output.text = re.sub(r"^\n--- \w+ ---\n\n", "", output.text)
    return output

@event_priority(100)    # before mkdocs-jupyter looks for notebooks
def on_files(files, config):
    """Add the source and the notebook it becomes, run again if it or a library changed."""
    if not is_whole(home() / "run.ipynb"):
        tell(home())
    dress(home())
    files.append(File("anatomy.ipynb", str(home()), config.site_dir, config.use_directory_urls))
    files.append(File.generated(config, "anatomy.py", content=source()))
    return files

def generated(name):
    """The picture or table of that name, as this run made it, as part of a page."""
    text = (home() / name).read_text("utf-8")
    if name.endswith(".md"):
        wide = ' tabindex="0"' if max(map(len, text.split("\n"))) > 45 else ""
        text = re.sub(r"(?<!\\)[*_]", r"\\\g<0>", text).replace("<", "&lt;")     # __add__ is not bold
        return f'<div class="table"{wide} data-search-exclude markdown>\n\n{text}\n</div>'
    return shown(themed(text))

def chapter(name):
    """The heading of a chapter by its name, as a link to it."""
    told = source()
    number = re.search('(?s)CHAPTERS = \\("(.*?)"\\)', told)[1].replace('"', "").split().index(name) + 1
    title = re.search(f"(?m)^# ## ({number}[.] .*)", told)[1]
    return f'## <a href="../anatomy/#{slugify(title, "-")}">{title}</a>'

def on_page_markdown(markdown, page, config, files):
    def word(match):
        name = match[1]
        if name == "source":
            return source()
        if name == "versions":
            return VERSIONS
        return generated(name) if "." in name else chapter(name)
    return re.sub(r"\{\{ (\S+) \}\}", word, markdown)

def on_page_content(page_html, page, config, files):
    repository = (config.repo_url or "").rstrip("/")
    is_story = page.file.src_uri == "anatomy.ipynb"
    if repository:
        page.edit_url = f"{repository}/edit/HEAD/" + ("anatomy.py" if is_story else f"docs/{page.file.src_uri}")
    page_html = lighter(page_html)
    if is_story:
        page_html, headings, words = undress(page_html)
        WORDS.update(words)
        page.toc = get_toc(nest_toc_tokens(headings))
        ways = '<a href="anatomy.ipynb" download>Download this page as a notebook</a>'
        if "github.com/" in repository:
            ways += f' or <a href="{COLAB.format(repository.split("github.com/")[1])}">open it in Colab</a>'
        page_html = page_html.replace("</h1>", f"</h1><p>{ways}.</p>", 1)
        page.meta["description"] = "The whole story, from a slope by trying to thirty exercises, with its pictures."
    return page_html.replace("<pre>", '<pre tabindex="0">')     # wide code scrolls, by keyboard too

def on_post_page(output, page, config):
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')     # theme's omission

def on_post_template(output, template_name, config):
    return on_post_page(output, None, config)

@event_priority(-100)   # after the search has written its index
def on_post_build(config):
    """Who searches a word finds first where it is introduced."""
    path = Path(config.site_dir, "search/search_index.json")
    index = json.loads(path.read_text("utf-8"))
    for entry in index["docs"]:
        page, _, section = entry["location"].partition("#")
        if page.startswith("anatomy") and section in WORDS:
            entry["tags"] = WORDS[section]
    path.write_text(json.dumps(index), "utf-8")
