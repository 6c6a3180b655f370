"""MkDocs hooks: run ../anatomy.py once, and publish what that run says and draws.

on_files          anatomy.py -> an executed notebook, which mkdocs-jupyter renders,
                  and its pictures and tables, for the other pages
on_page_markdown  {{ source }}, {{ versions }}, {{ CHAPTER }}, {{ NAME.svg }}, {{ NAME.md }}
on_page_content   JupyterLab's clothes off, Material's on
on_post_build     to the search, the words that each section introduces
"""
import html, json, platform, re, shutil, sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
import jupytext, nbclient, nbformat
from bs4 import BeautifulSoup
from markdown.extensions.toc import nest_toc_tokens, slugify
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

sys.path.insert(0, str(Path(__file__).parent))
import questions
from pictures import embedded, name_of, shown, themed

ROOT = Path(__file__).parents[1]
VERSIONS = f"Python {platform.python_version()}, numpy {version('numpy')}, matplotlib {version('matplotlib')}"
COLAB = "https://colab.research.google.com/github/{}/blob/gh-pages/anatomy/anatomy.ipynb"
BOXES = '[class*="jp-"], .jupyter-wrapper, .CodeMirror, .zeroclipboard-container'
# Files that the story names as its sources, by how their paths begin.
SOURCES = {"torch/": "pytorch/pytorch", "docs/source/notes/": "pytorch/pytorch", "autograd/": "HIPS/autograd",
           "jax/": "jax-ml/jax", "docs/autodidax": "jax-ml/jax", "micrograd/": "karpathy/micrograd",
           "bitsandbytes/": "bitsandbytes-foundation/bitsandbytes", "muon.py": "KellerJordan/Muon"}

WORDS = {}      # of the story, for the search

def source():
    return (ROOT / "anatomy.py").read_text("utf-8")

def notebook():
    """anatomy.py as a notebook not yet run."""
    return jupytext.reads(source(), "py:percent")

def home():
    """Where the run of this very text with these very libraries is kept."""
    return ROOT / ".cache/site" / sha256((source() + questions.FACTS + VERSIONS).encode()).hexdigest()[:16]

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
        return f'<div class="table"{wide} markdown>\n\n{text}\n</div>'
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
        if name in ("source", "versions"):
            return {"source": source, "versions": lambda: VERSIONS}[name]()
        return generated(name) if "." in name else chapter(name)
    return re.sub(r"\{\{ (\S+) \}\}", word, markdown)

def fold(soup, label, parts, at):
    """These parts of a page, in a fold that stands where `at` stood."""
    details = soup.new_tag("details", attrs={"class": "fold", "data-search-exclude": ""})
    at.insert_before(details)
    details.append(soup.new_tag("summary", string=label))
    for part in parts:
        details.append(part.extract())

def label_of(code, section):
    """What stands on the fold of a cell."""
    broken = re.search(r'@breakage\("(\w+)"\)', code)
    names = re.findall(r"(?m)^(?:def|class) (\w+)", code)
    exercises = [name.replace("_", ".") for name in re.findall(r"(?m)^def (\w+_\d)\(", code)]
    listed = ", ".join(exercises or names)
    if broken:
        return f"{broken[1]}: what happens, and why"
    if "REASONS = " in code:
        return "The answers to the twenty numbers"
    if names == ["questions"]:
        return "All questions once more, and what a wrong answer hears"
    if "judges" in section:
        return f"How answers are judged, which tells much of them: {listed}"
    if exercises:
        return f"The code that computes {listed}"
    if names and names[0].startswith("draw"):
        return f"The code that draws: {listed}"
    return f"Code behind the scenes: {listed}" if names else "Code behind the scenes"

def folded(cell, soup):
    """Fold the code of a cell, and its outputs too if they are an answer."""
    code = cell.select_one(".highlight")
    label = label_of(code.get_text(), code.find_previous(["h1", "h2", "h3"]).get_text())
    outputs = cell.select_one(".outputs")
    if "celltag_answer" not in cell["class"] or not outputs:
        fold(soup, label, [code], code)
    elif "@breakage" in code.get_text():        # what it says comes first, and then how that was found
        said = outputs.pre.get_text().strip()
        outputs.pre.string = re.sub(r"(?<=\S)\n(?=\S)(?!Caught by: |Repair: )", " ", said)
        fold(soup, "The code of this breakage", [code], code)
        inner = cell.select_one("details")
        fold(soup, label, [outputs, inner], inner)
    else:
        fold(soup, label, [code, outputs], code)

def fold_solutions(soup):
    """In the chapter of answers, each with all that is said of it in a fold of its own."""
    answers = soup.find("h2", id="answers")
    for heading in answers.find_next_siblings("h4") if answers else ():
        parts = []
        for part in heading.find_next_siblings(True):
            if part.name in ("h2", "h4"):
                break
            parts.append(part)
        for inner in [part for part in parts if part.name == "details"]:
            inner.summary.decompose()
        fold(soup, heading.get_text().rstrip("¶"), parts, heading)
        heading.decompose()
    for inner in soup.select("details.fold > details.fold:not(:has(> summary))"):
        inner.unwrap()

def undress(page_html):
    """mkdocs-jupyter's page as Material would have written it, and the headings in it."""
    soup = BeautifulSoup(lighter(page_html), "html.parser")
    for tag in soup.select("style, script, clipboard-copy, .clipboard-copy-txt, .celltoolbar, .question .notebook"):
        tag.decompose()
    for pre in soup.select(".highlight-ipynb > pre"):       # as Material renders a fenced block
        pre.parent["class"], pre.name = "highlight", "code"
        pre.wrap(soup.new_tag("pre"))
    for area in soup.select(".jp-OutputArea"):
        area.attrs = {"class": "outputs"}
        if not area.get_text(strip=True) and not area.img:
            area.decompose()
    for cell in soup.select(".celltag_fold[id], .celltag_answer[id]"):
        folded(cell, soup)
    for box in soup.select(BOXES):                          # flat, so that search files it by heading
        box.unwrap()
    for img in soup.select(".outputs img"):
        img.replace_with(BeautifulSoup(shown(img["src"]), "html.parser"))
    fold_solutions(soup)
    for part in soup.select("h4[id], h2#answers, .exercise details"):
        part["data-search-exclude"] = ""                    # texts of exercises, hints and answers
    link(soup)
    WORDS.update(introduced(soup))
    headings = [{"level": int(h.name[1]), "id": h["id"], "name": html.escape(h.get_text().rstrip("¶"))}
                for h in soup.select("h2[id], h3[id]")]
    return str(soup).replace('"anchor-link"', '"headerlink"'), headings

def link(soup):
    """Chapters, papers and files of other projects, where prose names them, as links to them."""
    chapters = {h.get_text().split(".")[0]: h["id"] for h in soup.select("h2[id]")}
    def chapter(match):
        return re.sub(r"([Cc]hapters?\s)?(\d+)", lambda named: f'<a href="#{chapters[named[2]]}">{named[0]}</a>', match[0])
    for text in soup.find_all(string=re.compile(r"[Cc]hapter|arXiv|\.(py|cpp|rst|pub|io)\b")):
        prose = text.find_parent(["p", "li"])
        if prose is None or text.find_parent(["a", "summary", "div"]) is not None:
            continue
        new = re.sub(r"[Cc]hapters?\s\d+((,|,? and| to)\s\d+)*", chapter, html.escape(text, quote=False))
        new = re.sub(r"arXiv\s+(\d{4}\.\d{5})", r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>', new)
        new = re.sub(r"cs231n\.github\.io/[\w-]+", r'<a href="https://\g<0>/">\g<0></a>', new)
        for start, repository in SOURCES.items():
            if text.parent.name == "code" and text.startswith(start):
                new = f'<a href="https://github.com/{repository}/blob/HEAD/{text}">{new}</a>'
        text.replace_with(BeautifulSoup(new, "html.parser"))

def introduced(soup):
    """The words of each section, by its id, that stand there for the first time in italics, in bold or in a def."""
    seen, words, section = set(), {}, ""
    for tag in soup.select("h2[id], h3[id], h4[id], p em, p strong, .highlight code"):
        if tag.name[0] == "h":
            section, found = tag["id"], []
        elif tag.name == "code" and not tag.find_parent("details"):
            found = re.findall(r"(?m)^ *(?:def |class |Tensor\.)([a-zA-Z]\w*)(?= =|\(|:)", tag.get_text())
        else:
            found = [] if tag.find_parent(["details", "div"]) else [tag.get_text()]
        for word in found:
            # The longer form of a known word, such as relu_rule or AdamW, is no new word.
            known = any(word.lower().startswith(one) for one in seen if len(one) > 2)
            if " " in word or not known:
                seen.add(word.lower())
                words.setdefault(section, []).append(word)
    return words

def on_page_content(page_html, page, config, files):
    repository = (config.repo_url or "").rstrip("/")
    is_story = page.file.src_uri == "anatomy.ipynb"
    if repository:
        page.edit_url = f"{repository}/edit/HEAD/" + ("anatomy.py" if is_story else f"docs/{page.file.src_uri}")
    if is_story:
        page_html, headings = undress(page_html)
        page.toc = get_toc(nest_toc_tokens(headings))
        ways = '<a href="anatomy.ipynb" download>Download this page as a notebook</a>'
        if "github.com/" in repository:
            ways += f' or <a href="{COLAB.format(repository.split("github.com/")[1])}">open it in Colab</a>'
        page_html = page_html.replace("</h1>", f"</h1><p>{ways}.</p>", 1)
        page.meta["description"] = "The whole story, from a slope by trying to thirty exercises, with its pictures."
    return lighter(page_html).replace("<pre>", '<pre tabindex="0">')     # wide code scrolls, by keyboard too

def lighter(page_html):
    """Only names, keywords, strings and comments of code have colours, and neighbours of one colour one mark."""
    page_html = re.sub('<span class="(?:[nwpo]|ow|nb|m[if])">([^<]*)</span>', r"\1", page_html)
    page_html = re.sub('<span class="s[aei12d]">', '<span class="s">', page_html)
    for mark in "s", "c1":
        one = f'<span class="{mark}">[^<]*</span>'
        page_html = re.sub(f"{one}(\\n? *{one})+", lambda run: re.sub(
            f'</span>(\\n? *)<span class="{mark}">', r"\1", run[0]), page_html)
    return page_html

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
