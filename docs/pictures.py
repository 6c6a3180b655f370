"""Matplotlib's SVG made fit for a page: small, named for a screen reader, in the colours of the theme.

python docs/pictures.py FOLDER does so with every SVG there, which then follows a
browser's light or dark scheme by itself, as on a page of GitHub.
"""
import html, re, sys
from pathlib import Path

SCHEME = ("<style>svg{color:#222}@media(prefers-color-scheme:dark)"
          "{svg{color:#ddd;filter:brightness(1.4)}}</style>")

def points(svg):
    """Each series of markers as one path: a stroke without length per dot, two lines per cross."""
    for marker, d in re.findall(r'<path id="(m\w+)" d="(.*?)"', svg, re.S):
        use = rf'<use xlink:href="#{marker}" x="(\S+)" y="(\S+)" style="(.*?)"/>'
        size = 2 * float(re.search(r"-?[\d.]+ (-?[\d.]+)", d)[1])
        if "C" in d:        # a circle: its edge is 1 wide
            draw, width = "M{:.1f} {:.1f}h0", abs(size) + 1
        elif d.count("M") == 2:
            draw, width = f"M{{:.1f}} {{:.1f}}m-{size/2} -{size/2}l{size} {size}m0-{size}l-{size} {size}", 1
        else:
            continue        # a tick of an axis
        def path(match):
            spots = [draw.format(float(x), float(y)) for x, y, _ in re.findall(use, match[0])]
            color = re.search("stroke: ([^;\"]+)", match[0])[1]
            opacity = re.search("(stroke-)?opacity: ([.\\d]+)", match[0])
            faint = f"; opacity: {opacity[2]}" if opacity else ""
            return (f'<path d="{"".join(spots)}" style="fill: none; stroke: {color}; '
                    f'stroke-width: {width:g}; stroke-linecap: round{faint}"/>')
        svg = re.sub(rf"({use}\s*)+", path, svg)
    return svg

def straightened(match):
    """A run of points without those that lie between their neighbours, on a line along an axis."""
    points = [(float(x), float(y)) for x, y in re.findall(r"L (\S+) (\S+)", match[0])]
    kept = points[:1]
    for here, after in zip(points[1:], points[2:]):
        both = list(zip(kept[-1], here, after))
        between = all(min(a, c) <= b <= max(a, c) for a, b, c in both)
        level = any(a == b == c for a, b, c in both)
        if not (between and level):
            kept.append(here)
    return "".join(f"L {x:g} {y:g} " for x, y in kept + points[-1:])

def themed(svg):
    """One picture as a page wants it: its title as a name, ink in the colour of the text, no paper."""
    alt = html.escape(html.unescape(re.search("(?s)<title>(.*?)</title>", svg)[1]))
    svg = re.sub(r"(?s)^.*?(?=<svg)|<!--.*?-->|<(style|metadata|title|defs)>\s*</\1>|"
                 r"<(style|metadata|title)\b.*?</\2>", "", svg)
    svg = re.sub(r'([\s"-](?:\d\d+\.\d|\d\.\d\d))\d+', r"\1", points(svg))     # enough for an eye
    svg = re.sub(r"(L \S+ \S+\s+){3,}", straightened, svg)
    svg = svg.replace("fill: #ffffff", "fill: none").replace("#000000", "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{alt}" fill="currentColor" ', 1)

def inline(svg, name):
    """A themed picture to stand in a page: no id that another has."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", svg)

def alone(svg):
    """A themed picture to stand by itself: it follows the browser's scheme."""
    return re.sub(r"(<svg [^>]*>)", rf"\g<1>{SCHEME}", svg, count=1)

if __name__ == "__main__":
    for path in Path(sys.argv[1]).glob("*.svg"):
        path.write_text(alone(themed(path.read_text("utf-8"))), "utf-8", newline="\n")
