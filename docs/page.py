"""The page of the story: what mkdocs-jupyter wrote, as Material would have written it.

Code is coloured with few marks, cells that say so are folded, a picture stands in the
page itself with its caption, and chapters, papers and sources are links.
"""
import html
import re

from bs4 import BeautifulSoup
from pictures import shown

BOXES = '[class*="jp-"], .jupyter-wrapper, .CodeMirror, .zeroclipboard-container'
# Files that the story names as its sources, by how their paths begin.
SOURCES = {"torch/": "pytorch/pytorch", "docs/source/notes/": "pytorch/pytorch", "autograd/": "HIPS/autograd",
           "jax/": "jax-ml/jax", "docs/autodidax": "jax-ml/jax", "micrograd/": "karpathy/micrograd",
           "bitsandbytes/": "bitsandbytes-foundation/bitsandbytes", "muon.py": "KellerJordan/Muon"}

def undress(page_html):
    """mkdocs-jupyter's page as Material would have written it, its headings, and the words it introduces."""
    soup = BeautifulSoup(page_html, "html.parser")
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
    headings = [{"level": int(h.name[1]), "id": h["id"], "name": html.escape(h.get_text().rstrip("¶"))}
                for h in soup.select("h2[id], h3[id]")]
    return str(soup).replace('"anchor-link"', '"headerlink"'), headings, introduced(soup)

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

def lighter(page_html):
    """Only names, keywords, strings and comments of code have colours, and neighbours of one colour one mark."""
    page_html = re.sub('<span class="(?:[nwpo]|ow|nb|m[if])">([^<]*)</span>', r"\1", page_html)
    page_html = re.sub('<span class="s[aei12d]">', '<span class="s">', page_html)
    for mark in "s", "c1":
        one = f'<span class="{mark}">[^<]*</span>'
        page_html = re.sub(f"{one}(\\n? *{one})+", lambda run: re.sub(
            f'</span>(\\n? *)<span class="{mark}">', r"\1", run[0]), page_html)
    return page_html
