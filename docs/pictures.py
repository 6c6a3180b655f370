"""Matplotlib's SVG made fit for a page: small, named for a screen reader, in the colours of the theme.

python docs/pictures.py FOLDER does so with every SVG there, which then follows a
browser's light or dark scheme by itself, as on a page of GitHub.
"""
import base64
import html
import re
import sys
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SCHEME = "svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd;filter:brightness(1.4)}}"
PAPER = "svg{color:#222;background:#fff}"
FONT = {"font-family": "system-ui, 'DejaVu Sans', Verdana, sans-serif", "font-size": "9"}

def written(numbers, parts=10):
    """Whole numbers of parts, tenths or hundredths, as text without what a path may leave out."""
    text = " ".join(f"{number / parts:g}" for number in numbers)
    return re.sub(r"\b0\.", ".", text).replace(" -", "-")

def same_way(one, other):
    """Do two steps lead into one direction?"""
    (x, y), (u, v) = one, other
    return x * v == y * u and x * u + y * v >= 0

def shorter(path, parts=10):
    """A path in steps from point to point, rounded, without points that lie inside of a line."""
    here = start = (0, 0)
    steps = []      # each a command, and for each of its points the way there
    for command, numbers in re.findall(r"([MLCQz])([^MLCQz]*)", path):
        values = [round(parts * float(number)) for number in numbers.split()]
        ways = [(x - here[0], y - here[1]) for x, y in zip(values[::2], values[1::2])]
        if command == "z":
            here = start
        else:
            here = tuple(values[-2:])
        if command == "M":
            start = here
        if command == "L" and steps[-1][0] == "l" and same_way(steps[-1][1][0], ways[0]):
            (x, y), (u, v) = steps.pop()[1][0], ways[0]
            ways = [(x + u, y + v)]
        steps.append((command.lower(), ways))
    # A path may begin with a step: it is one from the corner of the picture.
    text, last = "", ""
    for command, ways in steps:
        numbers = written([number for way in ways for number in way], parts)
        if command != last or command == "m":
            text += command
        elif not numbers.startswith("-"):
            text += " "
        text, last = text + numbers, command
    return text

def marked(root):
    """Each series of marks as one path, whose corners carry the mark."""
    markers = {}
    for group in list(root.iter("g")):
        uses = [child for child in group if child.tag == "use" and "y" in child.attrib]
        if len(uses) > 2 and len({use.get("href") for use in uses}) == 1:
            shape = root.find(f".//path[@id='{uses[0].get('href')[1:]}']")
            look = {key: value for key, value in {**shape.attrib, **uses[0].attrib}.items() if key in ("d", "style")}
            name = markers.setdefault(str(look), f"{shape.get('id')}-{len(markers)}")
            spots = "".join(f"M {use.get('x')} {use.get('y')} " for use in uses)
            group[:] = [child for child in group if child not in uses]
            if root.find(f".//marker[@id='{name}']") is None:
                marker = Element("marker", {"id": name, "overflow": "visible", "markerUnits": "userSpaceOnUse"})
                marker.append(Element("path", look))
                group.append(marker)
            group.append(Element("path", {"d": spots, "style": f"fill: none; marker: url(#{name})"}))

def flattened(parent):
    """Without groups that say nothing, and without what nobody sees."""
    for child in list(parent):
        flattened(child)
        at = list(parent).index(child)
        empty = child.tag == "defs" and len(child) == 0
        unused = parent.tag == "defs" and "id" not in child.attrib
        paper = child.tag == "path" and child.get("style") == "fill: none"
        if child.tag in ("metadata", "title", "style") or empty or unused or paper:
            parent.remove(child)
        elif child.tag == "g" and not child.attrib:
            parent[at:at + 1] = list(child)

def tidied(part, parts):
    """A part of a picture in few words, its paths rounded to that many parts of a unit."""
    for key in {"x", "y", "width", "height"} & set(part.keys()):
        part.set(key, written([round(10 * float(part.get(key).removesuffix("pt")))]))
    if part.get("d"):
        part.set("d", shorter(part.get("d"), parts))
    if part.get("style"):
        style = re.sub(r"font-family: [^;]*;? ?|font-size: 9px;? ?|font: 9px [^;]*;? ?", "", part.get("style"))
        style = style.replace("#ffffff", "none").replace("#000000", "currentColor")
        part.set("style", re.sub("(; )?$", "", style))
    if "rotate(-0 " in part.get("transform", ""):
        del part.attrib["transform"]
    part.text, part.tail = (part.text or "").strip(), ""

def themed(svg):
    """One picture as a page wants it: its title as a name, ink in the colour of the text, no paper."""
    root = ElementTree.fromstring(svg.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:", ""))
    title = root.findtext("title")
    marked(root)
    small = root.findall(".//defs/path") + root.findall(".//marker/path")
    text = ElementTree.tostring(root, "unicode")
    for part in root.iter():
        named = part.get("id")
        if named and f'"#{named}"' not in text and f"url(#{named})" not in text:
            del part.attrib["id"]
        tidied(part, 100 if part in small else 10)
    flattened(root)
    root.attrib = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": " ".join(title.split()),
                   "viewBox": root.get("viewBox"), "fill": "currentColor", "stroke-linejoin": "round", **FONT}
    return ElementTree.tostring(root, "unicode")

def styled(svg, style):
    return re.sub("(<svg [^>]*>)", rf"\g<1><style>{style}</style>", svg, count=1)

def alone(svg):
    """A themed picture to stand by itself: it follows the browser's scheme."""
    return styled(svg, SCHEME)

def name_of(svg):
    return html.unescape(re.search('aria-label="(.*?)"', svg)[1])

def embedded(svg):
    """A themed picture as an image on paper, which a notebook shows before anybody trusts it."""
    data = base64.b64encode(styled(svg, PAPER).encode()).decode()
    # A point is 4/3 of a pixel.
    width = round(float(re.search('viewBox="0 0 (\\S+)', svg)[1]) * 4 / 3)
    return f'<img alt="{html.escape(name_of(svg))}" width="{width}" src="data:image/svg+xml;base64,{data}">'

def shown(svg):
    """A themed picture, or what `embedded` made of it, to stand in a page with its name as a caption."""
    if svg.startswith("data:"):
        svg = base64.b64decode(svg.split(",")[1]).decode().replace(f"<style>{PAPER}</style>", "")
    # Letters have one size in all pictures: one of 352.8 points, which most have, is 30 rem wide.
    width = float(re.search('viewBox="0 0 (\\S+)', svg)[1]) / 352.8 * 30
    svg = svg.replace("<svg ", f'<svg style="width:{width:.1f}rem" ', 1)
    caption = html.escape(name_of(svg), quote=False)
    return f'<figure data-search-exclude>{svg}<figcaption aria-hidden="true">{caption}</figcaption></figure>'

if __name__ == "__main__":
    for path in Path(sys.argv[1]).glob("*.svg"):
        path.write_text(alone(themed(path.read_text("utf-8"))), "utf-8", newline="\n")
