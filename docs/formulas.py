"""MkDocs hook: $a$ and $$b$$ in prose become SVG, so mathematics needs no script.

Matplotlib's mathtext sets them; it knows the part of TeX that also reads well raw.
"""
import html, io, re
from hashlib import sha256

from matplotlib import rc_context
from matplotlib.mathtext import math_to_image

EM = 11         # points to the text's em; Computer Modern, set at 12, then looks as large

def typeset(match):
    """A formula in the size and colour of its line, or what is none; a bad one ends the build."""
    if not (match[2] or match[3]):
        return match[0]
    tex, file = html.unescape(match[2] or match[3]).strip(), io.StringIO()
    drawn = tex.replace(r"\frac", r"\dfrac") if match[2] else tex
    with rc_context({"mathtext.fontset": "cm", "font.size": 12, "svg.hashsalt": tex,
                     "savefig.facecolor": "none"}):
        depth = math_to_image(f"${drawn}$", file, dpi=72, format="svg")
    svg = re.sub(r"(?s)^.*?(?=<svg)|<!--.*?-->|<(style|metadata).*?</\1>", "", file.getvalue())
    svg = re.sub(r'(\bid="|href="#)', rf"\1m{sha256(tex.encode()).hexdigest()[:8]}-", svg)
    wide, high = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    return svg.replace("<svg", f'<svg class="{"display" if match[2] else "math"}" role="img" '
                       f'aria-label="{html.escape(tex)}" style="width:{wide / EM:.3f}em;'
                       f'height:{high / EM:.3f}em;vertical-align:{-depth / EM:.3f}em"', 1)

def on_page_content(page_html, page, config, files):
    """Formulas drawn, wherever they do not stand in code, in a picture or in a tag."""
    return re.sub(r'(?s)<(pre|code|svg)\b.*?</\1>|<(?:"[^"]*"|[^">])*>'
                  r"|\$\$([^<]+?)\$\$|\$([^<]+?)\$", typeset, page_html)
