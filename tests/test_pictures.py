"""What stands on each picture is the data handed in, and its words agree with both."""
import ast
import inspect
import re
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib import colors, figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import ArrowStyle
from matplotlib.text import Text

import anatomy
from anatomy import BLUE, COLORS, GREEN, LINES, OPTIMIZERS, ORANGE, PURPLE, RATES, SIDE, Tensor, batches, spiral
from conftest import ROOT, SOURCE, is_demo

GREY, BLACK = "#888888", "#000000"
DRAWN = {name: draw for name, draw in vars(anatomy).items() if name.startswith("draw_")}
# The pictures of the story, in its order, and who draws them.
PICTURES = {"nudge": "draw_errors", "ledger": "draw_ledger", "engine": "draw_graph", "jacobian": "draw_jacobian",
            "unbroadcast": "draw_copies", "losses": "draw_losses", "optimizers": "draw_optimizers",
            "arms": "draw_arms", "spiral": "draw_regions", "boundaries": "draw_boundaries", "curves": "draw_curves",
            "correction": "draw_correction", "race": "draw_race", "trial": "draw_trial"}
EACH = pytest.mark.parametrize("name", PICTURES)


# What a reader sees on a figure

def page(rows=1, columns=1):
    """The axes of an empty figure."""
    return figure.Figure().subplots(rows, columns)


def ink(artist):
    """The colour of a line or a text."""
    return colors.to_hex(artist.get_color())


def lines(ax):
    """Colour -> its only line."""
    found = {ink(line): line for line in ax.lines}
    assert len(found) == len(ax.lines), "two lines of one colour"
    return found


def runs_through(line, x, y):
    """Does the line lead through these points, in this order?"""
    return np.array_equal(line.get_xydata(), np.column_stack([x, y]))


def labels(ax):
    """Text -> where it stands and its colour."""
    found = {text.get_text(): (*text.get_position(), ink(text)) for text in ax.texts if text.get_text()}
    assert len(found) == sum(text.get_text() != "" for text in ax.texts), "a text stands there twice"
    return found


def inks(ax):
    """Text -> its colour."""
    return {text: label[2] for text, label in labels(ax).items()}


def arrows(ax):
    """(tail, head, colour) of each arrow, and of each edge without a head."""
    found = []
    for note in ax.texts:
        if getattr(note, "arrow_patch", None):
            style, ends = note.arrow_patch.get_arrowstyle(), [tuple(note.xyann), tuple(note.xy)]
            kinds = {ArrowStyle.CurveB: ends, ArrowStyle.CurveA: ends[::-1], ArrowStyle.Curve: sorted(ends)}
            found.append((*kinds[type(style)], colors.to_hex(note.arrow_patch.get_edgecolor())))
    return found


def nearest(spot, places):
    """The key of the place that is nearest to the spot."""
    return min(places, key=lambda key: np.hypot(*np.subtract(places[key], spot[:2])))


def grid_of(ax, color, above=np.inf, right_of=-np.inf):
    """The numbers of one colour, row by row from the top."""
    rows = {}
    for text in ax.texts:
        (x, y), said = text.get_position(), text.get_text()
        if ink(text) == color and re.fullmatch(r"-?[\d.]+", said) and y < above and x > right_of:
            rows.setdefault(-y, {})[x] = float(said)
    return [[row[x] for x in sorted(row)] for _, row in sorted(rows.items())]


def filled(ax, x, y):
    """The colour, and the strength, of the plane at this point."""
    [plane] = [item for item in ax.collections if hasattr(item, "levels")]
    there = [color for path, color in zip(plane.get_paths(), plane.get_facecolor()) if path.contains_point((x, y))]
    assert len(there) == 1
    return colors.to_hex(there[0]), there[0][3]


# The colours

def test_each_colour_is_what_its_name_says():
    hues = {}
    for name, color in {"blue": BLUE, "orange": ORANGE, "green": GREEN, "purple": PURPLE}.items():
        hues[name] = 360 * colors.rgb_to_hsv(colors.to_rgb(color))[0]
    assert 190 < hues["blue"] < 250 and 20 < hues["orange"] < 45
    assert 90 < hues["green"] < 170 and 270 < hues["purple"] < 330


def test_each_optimizer_has_a_colour_and_a_dash_to_itself():
    assert list(COLORS) == list(LINES) == list(OPTIMIZERS)
    assert COLORS == {"SGD": BLUE, "Momentum": ORANGE, "RMSProp": GREEN, "Adam": PURPLE}
    assert len(set(LINES.values())) == 4


# Each function that draws, on data that can be told apart

@pytest.mark.parametrize("scale", ["linear", "log"])
def test_plain_ticks_stand_at_their_numbers_and_nowhere_else(scale):
    ax, ticks = page(), [0.003, 0.25, 1, 40, 1000]
    ax.set(xscale=scale, xlim=(0.001, 2000), yscale="log", ylim=(0.1, 900))
    others = ax.yaxis.get_minorticklocs()
    anatomy.plain_ticks(ax.xaxis, ticks)
    assert ax.xaxis.get_majorticklocs().tolist() == ticks and len(ax.xaxis.get_minorticklocs()) == 0
    assert [label.get_text() for label in ax.xaxis.get_majorticklabels()] == ["0.003", "0.25", "1", "40", "1000"]
    assert np.array_equal(ax.yaxis.get_minorticklocs(), others) and len(others) > 9


def test_errors_of_each_nudge_against_the_step():
    ax, h = page(), np.array([0.1, 1e-3, 1e-5, 1e-7, 1e-9])
    errors = {"forward": [3e-2, 1e-4, 2e-6, 5e-8, 4e-3], "central": [2e-1, 6e-9, 7e-5, 8e-4, 9e-2],
              "complex": [5e-3, 1e-11, 2e-16, 3e-16, 1e-16]}
    anatomy.draw_errors(ax, h, errors)
    found, names = lines(ax), {"forward": ORANGE, "central": BLUE, "complex": GREEN}
    assert len(found) == 3 and len({line.get_linestyle() for line in ax.lines}) == 3
    for name, color in names.items():
        assert runs_through(found[color], h, errors[name])
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step h", "worst relative error")
    # A dot at each tip, and the label says which step it is.
    for name, tip, step in ("forward", 3, "1e-07"), ("central", 1, "0.001"):
        assert found[names[name]].get_marker() == "o" and found[names[name]].get_markevery() == [tip]
        assert inks(ax)[f"{name},\nbest h {step}"] == names[name]
    assert found[GREEN].get_marker() == "None" and inks(ax)["complex"] == GREEN
    assert len(labels(ax)) == 5


def test_the_words_in_the_picture_of_the_nudge_are_laws_of_its_curve():
    """On the left the error grows like a power of h, and on the right like another."""
    ax, h = page(), 10.0 ** -np.arange(1, 17)
    errors = anatomy.nudge_errors(h)
    anatomy.draw_errors(ax, h, errors)
    said = dict(label.split(",\nlike ") for label in labels(ax) if "like" in label)
    powers = {"1/h": -1, "h": 1, "h^2": 2, "1/h^2": -2}
    for name, first, last, room in ("bending", 0, 2, 0.05), ("cancellation", 8, 12, 0.4):
        power = np.log10(errors["central"][first] / errors["central"][last]) / (last - first)
        assert abs(power - powers[said[name]]) < room, name


def graph():
    """The graph of chapter 2 at other values, and other spots: (nodes by letter, letters, spots)."""
    a, b = Tensor(7.0), Tensor(11.0)
    c, d = a + b, a * b
    nodes = {"a": a, "b": b, "c": c, "d": d, "L": c * d}
    spots = {"a": (0.1, 0), "b": (0, 2), "c": (2, 0), "d": (2.1, 2), "L": (4, 1)}
    return nodes, {node: name for name, node in nodes.items()}, {nodes[name]: spot for name, spot in spots.items()}


LEADS = {"c": "ab", "d": "ab", "L": "cd"}       # from whom each result is made


def test_the_ledger_in_three_steps():
    axes, (nodes, names, spots) = page(1, 3), graph()
    at = {name: spots[node] for name, node in nodes.items()}
    ledgers = [{"c": 40, "d": 50}, {"c": 40, "a": 70, "b": 90}, {"a": 75, "b": 98}]
    steps = [(nodes[taken], g, {nodes[name]: float(total) for name, total in ledger.items()})
             for taken, g, ledger in zip("Ldc", (1.0, 50.0, 40.0), ledgers)]
    anatomy.draw_ledger(axes, spots, names, steps)
    sums = [{"c": "40", "d": "50"}, {"c": "40", "a": "70", "b": "90"}, {"a": "70 + 5 = 75", "b": "90 + 8 = 98"}]
    for ax, taken, g, wanted in zip(axes, "Ldc", (1, 50, 40), sums):
        assert ax.get_title() == f"take {taken}, its g is {g}"
        [light] = ax.lines
        assert light.get_xydata().tolist() == [list(at[taken])] and ink(light) == ORANGE
        letters, numbers = {}, {}
        for text in ax.texts:
            spot, said = text.get_position(), text.get_text()
            if ink(text) == ORANGE:
                numbers[nearest(spot, at)] = said
            elif said:
                letters[said] = spot
        assert letters == at and numbers == wanted
        reports = [(at[taken], at[name], ORANGE) for name in LEADS[taken]]
        others = [(*sorted([at[name], at[result]]), BLACK) for result in LEADS if result != taken
                  for name in LEADS[result]]
        assert sorted(arrows(ax)) == sorted(reports + others)


def test_the_graph_forward_and_back():
    ax, (nodes, names, spots) = page(), graph()
    at = {name: spots[node] for name, node in nodes.items()}
    # L = c d is 18 * 77, so c gets 77 and d gets 18, times b or a on the way.
    g = {"L": 1, "c": 77, "d": 18, "a": 77 + 18 * 11, "b": 77 + 18 * 7}
    anatomy.draw_graph(ax, spots, names, {nodes[name]: float(number) for name, number in g.items()})
    ways = []
    for result in LEADS:
        for name in LEADS[result]:
            ways += [(at[name], at[result], BLUE), (at[result], at[name], ORANGE)]
    assert sorted(arrows(ax)) == sorted(ways)
    values, sums, slopes, words = {}, {}, {}, {}
    for text in ax.texts:
        spot, said = text.get_position(), text.get_text()
        if ":" in said:
            words[said] = ink(text)
        elif said and ink(text) == BLUE:
            values[said] = spot
        elif said and ink(text) == ORANGE:
            name = nearest(spot, at)
            sums[name] = said
            if name != "L":             # away from the arrows: above the upper nodes, below the lower ones
                assert spot[0] == at[name][0] and (spot[1] > at[name][1]) == (at[name][1] > at["L"][1])
        elif said:
            [way] = [way for way in ("ac", "bc", "ad", "bd", "cL", "dL") if lies_between(spot, *map(at.get, way))]
            slopes[way] = said
    assert words == {"forward: values": BLUE, "back: cotangents": ORANGE}
    assert values == {"a = 7": at["a"], "b = 11": at["b"], "c = 18": at["c"], "d = 77": at["d"], "L = 1386": at["L"]}
    assert slopes == {"ac": "1", "bc": "1", "ad": "11", "bd": "7", "cL": "77", "dL": "18"}
    assert sums.pop("L") == "1" and sums.pop("c") == "77 = 1*77" and sums.pop("d") == "18 = 1*18"
    assert {name: sorted(re.split(" [=+] ", said)) for name, said in sums.items()} == {
        "a": sorted(["275", "77*1", "18*11"]), "b": sorted(["203", "77*1", "18*7"])}
    assert all(said.startswith(f"{g[name]} = ") for name, said in sums.items())


def lies_between(spot, one, other):
    """Is the spot on the straight way from one to the other?"""
    way, here = np.subtract(other, one), np.subtract(spot, one)
    return abs(way[0] * here[1] - way[1] * here[0]) < 1e-9 and 0 < here @ way < way @ way


def test_a_matrix_in_cells_is_read_like_a_page():
    ax = page()
    anatomy.in_cells(ax, [[1.5, -2, 3], [4, 50, 6]], 7, 9, GREEN, 0.5)
    assert labels(ax) == {"1.5": (7, 9, GREEN), "-2": (8, 9, GREEN), "3": (9, 9, GREEN),
                          "4": (7, 8, GREEN), "50": (8, 8, GREEN), "6": (9, 8, GREEN)}
    cells = [(*line.get_xydata()[0], ink(line), line.get_marker()) for line in ax.lines]
    assert sorted(cells) == sorted((*label, "s") for label in labels(ax).values())
    assert {text.get_alpha() for text in ax.texts} == {0.5} and {line.get_alpha() for line in ax.lines} == {0.1}
    assert {(text.get_ha(), text.get_va()) for text in ax.texts} == {("center", "center")}


def test_the_jacobian_between_seed_and_answer():
    axes = page(1, 2)
    matrix = np.array([[1.5, 2], [3, 4]])
    seeds, answers = [[0, 7], [8, 9]], [np.array([21.0, 28]), np.array([39.0, 52])]
    anatomy.draw_jacobian(axes, matrix, seeds, answers)
    assert [ax.get_title() for ax in axes] == ["the seed picks a row", "the seed adds the rows"]
    for ax, seed, answer in zip(axes, seeds, answers):
        assert grid_of(ax, BLUE) == matrix.tolist()
        assert grid_of(ax, ORANGE) == [[seed[0]], [seed[1]], answer.tolist()]
        # The seed stands left of its rows, the answer below its columns, and each name beside what it names.
        spots = {text.get_text(): text.get_position() for text in ax.texts}
        words = {word: spots[word] for word in ("seed", "Jacobian", "answer")}
        rows = [spots[f"{seed[i]}"] for i in range(2)]
        for i in range(2):
            assert rows[i][1] == spots[f"{matrix[i, 0]:g}"][1] and rows[i][0] < spots[f"{matrix[i, 0]:g}"][0]
            assert spots[f"{answer[i]:g}"][0] == spots[f"{matrix[0, i]:g}"][0]
        assert words["seed"][0] == rows[0][0] and words["seed"][1] > rows[0][1] > rows[1][1] > words["answer"][1]
        assert words["answer"][1] == spots[f"{answer[0]:g}"][1] and words["answer"][0] < spots[f"{answer[0]:g}"][0]
        assert words["Jacobian"][1] == words["seed"][1]
        assert words["Jacobian"][0] == np.mean([spots["1.5"][0], spots["2"][0]])
        colours = {text.get_text(): ink(text) for text in ax.texts}
        assert (colours["seed"], colours["Jacobian"], colours["answer"]) == (ORANGE, BLUE, ORANGE)
        between = [text.get_position() for text in ax.texts if text.get_text() == "*"]
        assert [y for _, y in between] == [y for _, y in rows]
        assert all(rows[0][0] < x < spots["1.5"][0] for x, _ in between)
    # Only the row that the first seed leaves out is faint, with its seed and its star.
    faint = [text.get_text() for ax in axes for text in ax.texts if (text.get_alpha() or 1) < 0.6]
    assert sorted(faint) == sorted(["0", "*", "1.5", "2"])


def test_copies_forward_and_sums_backward():
    axes, row, copies = page(1, 2), np.array([10.0, 20, 30]), np.array([[11.0, 21, 31], [12, 22, 32]])
    g, total = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([50.0, 70, 90])
    anatomy.draw_copies(axes, row, copies, g, total)
    wanted = [("forward: the row is copied", BLUE, [row, *copies], 1),
              ("backward: each column is summed", ORANGE, [total, *g], -1)]
    for ax, (title, color, rows, way) in zip(axes, wanted):
        assert ax.get_title() == title and {*inks(ax).values()} == {color}
        assert grid_of(ax, color) == [list(numbers) for numbers in rows]
        cells = {(i, j): labels(ax)[f"{rows[i][j]:g}"][:2] for i in range(3) for j in range(3)}
        # From the row above to the same column of each row below, or back.
        ways = []
        for tail, head, shade in arrows(ax):
            assert shade == color
            ways.append((nearest(tail, cells), nearest(head, cells))[::way])
        assert sorted(ways) == sorted(((0, j), (i, j)) for i in (1, 2) for j in range(3))


def test_two_losses_and_their_slopes():
    axes, z = page(2, 1), np.array([-10.0, 0, 20, 50])
    patched, exact = [[1, 2, 3, 4], [5, 7, 6, 8]], [[10, 20, 40, 30], [50, 70, 90, 80]]
    anatomy.draw_losses(axes, z, patched, exact)
    for k, title in enumerate(["loss of a point with y = 0", "its slope along z"]):
        ax = axes[k]
        assert ax.get_title() == title and ax.get_xlabel() == "logit z"
        assert set(lines(ax)) == {BLUE, ORANGE}
        assert runs_through(lines(ax)[BLUE], z, exact[k]) and runs_through(lines(ax)[ORANGE], z, patched[k])
        assert lines(ax)[BLUE].get_linestyle() != lines(ax)[ORANGE].get_linestyle()
        assert inks(ax) == {"from the logit": BLUE, "with the patch": ORANGE}


def made_walks():
    """A bowl whose height is x + 20 y from a corner, and two paths in it."""
    gentle, steep = np.linspace(-0.35, 1.2, 5), np.linspace(-4, 4, 7)
    height = (gentle + 0.35) + 5 * (steep[:, np.newaxis] + 4)
    paths = {"Momentum": np.array([[1, 2], [0.5, -3], [0.25, -1.5]]),
             "SGD": np.array([[1, 2], [0.75, 1], [0.125, -2], [0.5, 1.25]])}
    return (gentle, steep, height), paths


def test_walks_in_a_bowl():
    ax, (valley, paths) = page(), made_walks()
    anatomy.show_walks(ax, valley, paths)
    *walks, start = ax.lines
    assert sorted(map(ink, walks)) == sorted([BLUE, ORANGE])
    for line in walks:
        name = {BLUE: "SGD", ORANGE: "Momentum"}[ink(line)]
        assert runs_through(line, *paths[name].T) and line.get_marker() == "."
    assert start.get_xydata().tolist() == [[1, 2]] and start.get_marker() == "o"
    found = labels(ax)
    assert {text: color for text, (_, _, color) in found.items()} == {
        "SGD, step 3": BLUE, "Momentum, step 2": ORANGE, "start": BLACK, "bottom": BLACK}
    for word, place in ("start", (1, 2)), ("bottom", (0, 0)):
        assert found[word][:2] == pytest.approx(place, abs=0.05)
    # From each label an arrow to the end of its path.
    ends = {(tail, head, color) for tail, head, color in arrows(ax)}
    assert {(head, color) for _, head, color in ends} == {((0.5, 1.25), BLUE), ((0.25, -1.5), ORANGE)}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gentle axis", "steep axis")
    assert ax.get_title() == "the same start, in a bowl from above"


def test_the_bowl_is_darker_where_it_is_higher():
    ax, (valley, paths) = page(), made_walks()
    anatomy.show_walks(ax, valley, paths)
    strips = [filled(ax, 0.4, -4 + k + 0.3) for k in range(8)]
    assert {color for color, _ in strips} == {BLACK}
    shades = [strength for _, strength in strips]
    assert shades[0] == 0 and min(np.diff(shades)) > 0.01 and shades[-1] < 0.3
    # Along the other axis it hardly rises here.
    assert filled(ax, -0.3, 0.3) == filled(ax, 1.1, 0.3)


def test_how_many_times_too_long():
    axes, (valley, paths) = page(2, 1), made_walks()
    r = 2 + np.cos(np.arange(1, 1501) / 9.0)
    anatomy.draw_optimizers(axes, r, valley, paths)
    curve, *dots, line_at_1 = axes[0].lines
    assert runs_through(curve, np.arange(1, 1501), r)
    assert axes[0].get_xscale() == "log" and axes[0].get_yscale() == "linear"
    spots = {t: (t, r[t - 1]) for t in (1, 12, 1000)}
    assert [tuple(dot.get_xydata()[0]) for dot in dots] == list(spots.values())
    assert {ink(line) for line in (curve, *dots)} == {COLORS["Adam"]}
    assert list(line_at_1.get_ydata()) == [1, 1] and line_at_1.get_linestyle() == "-"
    found = labels(axes[0])
    x, y, _ = found.pop("1: as long as it should be")
    assert abs(y - 1) < 1
    # On a logarithmic axis the distance is a factor.
    logs = {t: (np.log(t), up) for t, (t, up) in spots.items()}
    numbers = {nearest((np.log(x), y), logs): text for text, (x, y, _) in found.items()}
    assert numbers == {t: f"{r[t - 1]:.2f}" for t in spots} and len(found) == 3
    assert axes[0].get_xlabel() == "step t" and "without correction" in axes[0].get_title()
    assert axes[1].get_xlabel() == "gentle axis" and len(axes[1].lines) == 3


def shows_the_arms(ax, X):
    """Blue dots for the first half, orange crosses for the second, all sides equal."""
    half = len(X) // 2
    dots, crosses = lines(ax)[BLUE], lines(ax)[ORANGE]
    assert len(ax.lines) == 2
    assert runs_through(dots, *X[:half].T) and runs_through(crosses, *X[half:].T)
    assert (dots.get_marker(), crosses.get_marker()) == ("o", "x")
    assert dots.get_linestyle() == crosses.get_linestyle() == "None"
    assert ax.get_aspect() == 1 and ax.get_xlim() == ax.get_ylim() == (-2.4, 2.4) and not ax.axison


def test_the_two_arms_with_their_labels():
    ax, X = page(), spiral(5)[0][::2]
    anatomy.draw_arms(ax, X)
    shows_the_arms(ax, X)
    assert inks(ax) == {"label 0": BLUE, "label 1": ORANGE} and ax.get_title() == ""
    ax = page()
    anatomy.paint(ax, X[::5], "a title")
    shows_the_arms(ax, X[::5])
    assert ax.get_title() == "a title" and not ax.texts


@pytest.mark.parametrize("draw", [anatomy.draw_regions, anatomy.draw_boundaries], ids=lambda draw: draw.__name__)
def test_the_plane_is_blue_below_0_and_orange_above(draw):
    axes, X = page(2, 3), spiral(2)[0][::3]
    x, y = np.meshgrid(SIDE, SIDE)
    made = [x - 1, y + 1, 0.5 - x, -1.5 - y, x + 2 * y - 1, 2 * x - y]
    draw(axes, X, {f"panel {k}": logits for k, logits in enumerate(made)})
    for k, ax in enumerate(axes.flat):
        assert ax.get_title() == f"panel {k}"
        shows_the_arms(ax, X)
        for i, j in [(5, 9), (5, 50), (30, 12), (33, 60), (58, 7), (60, 61)]:
            color, strength = filled(ax, SIDE[j], SIDE[i])
            assert color == (ORANGE if made[k][i, j] > 0 else BLUE)
            assert 0.1 < strength < 0.5


def test_a_curve_for_each_optimizer():
    ax = page()
    smooth = {name: np.linspace(3, 1, 2000) / 2 ** k for k, name in enumerate(OPTIMIZERS)}
    anatomy.draw_curves(ax, smooth)
    assert ax.get_xscale() == "linear" and ax.get_yscale() == "log" and len(ax.lines) == 4
    for k, name in enumerate(OPTIMIZERS):
        line = lines(ax)[COLORS[name]]
        assert runs_through(line, np.arange(2000), smooth[name])
        assert line.get_linestyle() == LINES[name]
        x, y, color = labels(ax)[name]
        # Beside the end of its line, at the median height of its last quarter: from 1.5 to 1.
        assert color == COLORS[name] and 2000 < x < 2200 and y == pytest.approx(1.25 / 2 ** k, abs=1e-3)
    assert set(labels(ax)) == set(OPTIMIZERS)
    # Where two lines are one, the dotted one is in front.
    assert ink(ax.lines[-1]) == COLORS["SGD"]
    sides = {text.get_text(): text.get_va() for text in ax.texts}
    assert sides == {"SGD": "top", "Momentum": "bottom", "RMSProp": "center", "Adam": "center"}
    assert ax.get_xlabel() == "step" and ax.get_title().startswith("loss, averaged with beta 0.98")


def test_ahead_and_behind():
    ax = page()
    corrected, uncorrected = np.linspace(2, 0.2, 200), np.linspace(1, 0.5, 200)
    uncorrected[49] = 2.5
    anatomy.draw_correction(ax, corrected, uncorrected)
    solid, dotted = ax.lines[:2]
    steps = np.arange(1, 201)
    assert runs_through(solid, steps, corrected) and solid.get_linestyle() == "-"
    assert runs_through(dotted, steps, uncorrected) and dotted.get_linestyle() == ":"
    assert ax.get_xscale() == "linear" and ax.get_yscale() == "log"
    upright = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1 and ink(line) == GREY]
    dots = [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == "o"]
    assert upright == [1, 50, 200]
    assert dots == [[[t, corrected[t - 1]], [t, uncorrected[t - 1]]] for t in (1, 50, 200)]
    assert {ink(line) for line in ax.lines} == {COLORS["Adam"], GREY}
    said = [(round(text.get_position()[0]), text.get_text()) for text in ax.texts]
    assert said[:3] == [(3, "ahead"), (52, "behind"), (202, "behind")]
    ends = {text.get_text(): text.get_position() for text in ax.texts[3:]}
    assert ends == {"with": (206, corrected[-1]), "without": (206, uncorrected[-1])}
    assert ax.get_title() == "Adam without bias correction is"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss on the training points")


def test_the_race_shows_median_range_and_the_best_rate():
    accuracy = np.random.default_rng(3).permutation(np.linspace(0.5, 1, 4 * 7 * 5)).reshape(4, 7, 5)
    axes, best = page(2, 2), [0, 2, 5, 6]
    anatomy.draw_race(axes, accuracy, best)
    for ax, name, seen, i in zip(axes.flat, OPTIMIZERS, accuracy, best):
        line, ring = ax.lines
        [band] = ax.collections
        worst, _, middle, _, top = np.sort(seen, axis=1).T
        assert set(map(tuple, band.get_paths()[0].vertices)) == {*zip(RATES, worst), *zip(RATES, top)}
        assert runs_through(line, RATES, middle) and line.get_linestyle() == LINES[name]
        assert ring.get_xydata().tolist() == [[RATES[i], middle[i]]]
        assert ring.get_marker() == "o" and ring.get_markerfacecolor() == "none"
        assert {ink(line), ink(ring), colors.to_hex(band.get_facecolor()[0]), ink(ax.title)} == {COLORS[name]}
        assert ax.get_title() == name and ax.get_xscale() == "log"
        [(text, (x, y, color))] = labels(ax).items()
        assert (text, x, color) == (f"best at {RATES[i]:g}", RATES[i], COLORS[name]) and y > 1
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes.flat] == [
        ("", "accuracy"), ("", ""), ("learning rate", "accuracy"), ("learning rate", "")]


def made_verdicts(seed=4):
    words = np.random.default_rng(seed).choice(["passes", "caught", "raises"], (23, 6)).tolist()
    return {name: dict(zip(anatomy.CHECKS, row)) for name, row in zip(anatomy.FAULTS, words)}


def test_the_trial_has_a_mark_for_each_verdict():
    ax, verdicts = page(), made_verdicts()
    anatomy.draw_trial(ax, verdicts)
    names, checks = list(anatomy.FAULTS), list(anatomy.CHECKS)
    marks = {"passes": ("s", ORANGE), "caught": (".", GREY), "raises": ("^", GREY)}
    for said, mark in marks.items():
        [line] = [line for line in ax.lines if (line.get_marker(), ink(line)) == mark]
        wanted = {(checks.index(check), names.index(name)) for name in names for check in checks
                  if verdicts[name][check] == said}
        assert set(map(tuple, line.get_xydata())) == wanted and line.get_linestyle() == "None"
    # The names beside the rows and above the columns, the first row at the top.
    for axis, wanted in (ax.xaxis, checks), (ax.yaxis, names):
        assert [label.get_text() for label in axis.get_majorticklabels()] == wanted
        assert axis.get_majorticklocs().tolist() == list(range(len(wanted)))
    assert ax.yaxis_inverted() and not ax.xaxis_inverted() and ax.xaxis.get_ticks_position() == "top"
    assert ax.get_title() == "which faults slip through which check?"
    # What the marks mean.
    found = labels(ax)
    assert found.pop("\u25a0 slips through")[2] == ORANGE
    assert found.pop("\u25cf caught    \u25b2 raises")[2] == GREY
    # The kinds stand beside their rows, with a line where the next one begins.
    kinds = [fault.kind for fault in anatomy.FAULTS.values()]
    firsts = [y for y in range(1, 23) if kinds[y] != kinds[y - 1]]
    between = [list(line.get_ydata()) for line in ax.lines if line.get_marker() == "None"]
    assert between == [[y - 0.5] * 2 for y in firsts]
    for kind, first, last in zip(dict.fromkeys(kinds), [0, *firsts], [*firsts, 23]):
        x, y, _ = found.pop(kind)
        assert x > 5.5 and y == (first + last - 1) / 2
    assert not found


# The pictures of the story

Shown = namedtuple("Shown", "draw data figure title boxes")


def made_race():
    """Losses that are lowest at rates 2, 4, 0 and 5, and shares that say otherwise."""
    rng = np.random.default_rng(8)
    loss, shares = rng.uniform(0.3, 0.9, (4, 7, 10)), rng.uniform(0.5, 0.99, (4, 7, 10))
    loss[range(4), [2, 4, 0, 5]] = 0.1
    return np.stack([loss, shares])


def writing(ax):
    """Everything that is written in a panel or around it, as artists."""
    found = [*ax.texts, ax.title]
    if ax.axison:
        for axis in ax.xaxis, ax.yaxis:
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_major_ticks() + axis.get_minor_ticks()
            found += [axis.label] + [label for tick in ticks if low <= tick.get_loc() <= high
                                     for label in (tick.label1, tick.label2)]
    return [text for text in found if text.get_text().strip() and text.get_visible()]


@pytest.fixture(scope="module")
def shown(runs, tmp_path_factory):
    """The pictures of the demonstrations; the four runs are there already, the race and the trial are made up."""
    pictures, saved, made = {}, [], made_verdicts()

    class Drawn(figure.Figure):
        def savefig(self, file, format, metadata):
            canvas = FigureCanvasAgg(self)
            canvas.draw()
            # An annotation has a box around its arrow, too, so it is asked for that of a mere text.
            boxes = [(text, Text.get_window_extent(text, canvas.get_renderer()))
                     for ax in self.axes for text in writing(ax)]
            saved.append((self, metadata["Title"], boxes))

    def record(name, draw, *data, **look):
        anatomy.picture(name, draw, *data, **look)
        pictures[name] = Shown(draw, data, *saved.pop())

    names = dict(vars(anatomy), wanted=lambda chapter: True, picture=record, print=lambda *words: None,
                 table=lambda *rows: None, race_table=lambda *rows: None, race=made_race, trial=made.get,
                 train=lambda kind, **settings: runs[kind.__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anatomy, "OUT", tmp_path_factory.mktemp("pictures"))
        patch.setattr(figure, "Figure", Drawn)
        for node in ast.parse(SOURCE).body:
            if is_demo(node) and "picture(" in ast.unparse(node):
                # Without its assertions, since what was made up need not fulfil them.
                exec(compile(ast.Module([node], []), "a demonstration", "exec", optimize=1), names)
    return pictures


def test_the_story_draws_these_pictures(shown):
    assert {name: picture.draw.__name__ for name, picture in shown.items()} == PICTURES
    assert list(shown) == list(PICTURES) and set(PICTURES.values()) == set(DRAWN)


@EACH
def test_a_picture_is_called_what_its_docstring_says(shown, name):
    assert shown[name].title == " ".join(DRAWN[PICTURES[name]].__doc__.split())


@EACH
def test_each_tick_stands_where_its_number_says(shown, name):
    for ax in shown[name].figure.axes:
        for axis in ax.xaxis, ax.yaxis:
            for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels()):
                said = label.get_text().replace("\u2212", "-")
                if re.fullmatch(r"[-\d.e]+%?", said):
                    number = float(said.rstrip("%")) / (100 if said.endswith("%") else 1)
                    assert number == pytest.approx(place, rel=1e-9, abs=1e-12)
                else:
                    assert name == "trial" or said == "", said


@EACH
def test_no_text_is_a_formula_or_leaves_the_page_or_covers_another(shown, name):
    boxes, edge = shown[name].boxes, shown[name].figure.bbox.max
    for k, (text, box) in enumerate(boxes):
        assert "$" not in text.get_text()
        assert (box.min > -1).all() and (box.max < edge + 1).all(), text
        for other, covered in boxes[:k]:
            gaps = np.maximum(box.min - covered.max, covered.min - box.max)
            # What stands askew has a box that is wider than itself.
            assert gaps.max() > -2 or text.get_rotation() % 90, (text, other)


def test_a_plane_is_large_enough_to_see_a_boundary_in_it(shown):
    """At least 1.3 inches of the 4.9."""
    for name in "arms", "spiral", "boundaries":
        drawing = shown[name].figure
        for ax in drawing.axes:
            assert ax.get_position().width * drawing.get_figwidth() > 1.3


@EACH
def test_all_points_of_a_line_are_in_view(shown, name):
    for ax in shown[name].figure.axes:
        for line in ax.lines:
            if line.get_transform() == ax.transData:
                (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
                x, y = line.get_xydata().T
                assert left <= x.min() and x.max() <= right and low <= y.min() and y.max() <= high, line


# What the story hands over

def test_the_nudge_is_drawn_over_sixteen_powers_of_ten(shown):
    h, errors = shown["nudge"].data
    np.testing.assert_allclose(h, [float(f"1e-{k}") for k in range(1, 17)], rtol=1e-12)
    assert errors == anatomy.nudge_errors(h)
    # Cancellation is left of the tips, with small steps, and bending right of them.
    spots = {text.split(",")[0]: place for text, place in labels(shown["nudge"].figure.axes[0]).items()}
    tips = [h[np.argmin(errors[way])] for way in ("forward", "central")]
    assert spots["cancellation"][0] < min(tips) and spots["bending"][0] > max(tips)
    # A name stands nearer to its own curve than to the others, in powers of ten.
    for way in errors:
        x, y, _ = spots[way]
        away = {other: np.min(np.hypot(np.log10(h / x), np.log10(np.maximum(found, 1e-17) / y)))
                for other, found in errors.items()}
        assert min(away, key=away.get) == way, away


def test_the_pass_by_hand_is_drawn(shown):
    """The numbers are those of the prose."""
    titles = [ax.get_title() for ax in shown["ledger"].figure.axes]
    assert titles == ["take L, its g is 1", "take d, its g is 5", "take c, its g is 6"]
    for title in titles:
        assert f"#     {title}." in SOURCE
    told = [[text.get_text() for text in ax.texts if ink(text) == ORANGE] for ax in shown["ledger"].figure.axes]
    assert list(map(sorted, told)) == [["5", "6"], ["10", "15", "6"], ["10 + 6 = 16", "15 + 6 = 21"]]
    said = [text.get_text() for text in shown["engine"].figure.axes[0].texts]
    assert {"a = 2", "b = 3", "c = 5", "d = 6", "L = 30", "1", "6 = 1*6", "5 = 1*5"} < set(said)
    assert {"21 = 6*1 + 5*3", "16 = 6*1 + 5*2"} <= set(said) or {"21 = 5*3 + 6*1", "16 = 5*2 + 6*1"} <= set(said)


def test_the_answers_to_the_seeds_are_right(shown):
    for ax, seed in zip(shown["jacobian"].figure.axes, ([1, 0], [1, 1])):
        assert grid_of(ax, BLUE) == [[1, 2], [3, 4]]
        assert grid_of(ax, ORANGE) == [[seed[0]], [seed[1]], (np.array(seed) @ [[1, 2], [3, 4]]).tolist()]


def test_the_copies_are_copies_and_the_sums_are_sums(shown):
    forward, backward = shown["unbroadcast"].figure.axes
    row, *copies = grid_of(forward, BLUE)
    total, *g = grid_of(backward, ORANGE)
    assert copies == [row, row] and len(row) == 3 and np.array_equal(np.sum(g, axis=0), total)


def softly(z):
    """log(1 + e^z) and its slope, in numpy."""
    return np.logaddexp(0, z), 1 / (1 + np.exp(-z))


def test_the_losses_drawn_are_those_of_class_0(shown):
    z, patched, exact = shown["losses"].data
    loss, p = softly(z)
    # 1 - p without rounding, as far as the patch lets it be seen.
    np.testing.assert_allclose(exact, [loss, p], rtol=1e-9)
    np.testing.assert_allclose(patched[0], -np.log(1 - p + 1e-8), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(patched[1], p * (1 - p) / (1 - p + 1e-8), rtol=1e-5, atol=1e-7)
    # Each label is nearer to its own line than to the other one.
    for k, ax in enumerate(shown["losses"].figure.axes):
        for x, y, color in labels(ax).values():
            gaps = {BLUE: abs(np.interp(x, z, exact[k]) - y), ORANGE: abs(np.interp(x, z, patched[k]) - y)}
            assert min(gaps, key=gaps.get) == color


def too_long(steps):
    """r(t) by the formula of the chapter."""
    t = np.arange(1, steps + 1)
    return (1 - 0.9 ** t) / np.sqrt(1 - 0.999 ** t)


def walk(steepness, steps, lr, beta=0.0):
    """Positions in the bowl from (1, 1), with an average of the slopes."""
    w, m, path = np.ones(2), np.zeros(2), [np.ones(2)]
    for _ in range(steps):
        m = beta * m + (1 - beta) * np.array(steepness) * w
        w = w - lr * m
        path.append(w)
    return np.array(path)


def test_the_walks_drawn_are_those_of_the_bowl(shown):
    r, (gentle, steep, height), paths = shown["optimizers"].data
    np.testing.assert_allclose(r, too_long(2000), rtol=1e-9)
    mu = (9 / 11) ** 2
    np.testing.assert_allclose(paths["SGD"], walk([1, 100], 40, 2 / 101), atol=1e-9)
    np.testing.assert_allclose(paths["Momentum"], walk([1, 100], 40, (2 / 11) ** 2 / (1 - mu), mu), atol=1e-9)
    x, y = np.meshgrid(gentle, steep)
    np.testing.assert_allclose(height, np.sqrt(x ** 2 + 100 * y ** 2))
    # All of the bowl has a shade.
    assert height.max() < 45


def test_each_arm_has_its_label_beside_it(shown):
    X, = shown["arms"].data
    assert np.array_equal(X, spiral()[0])
    ax = shown["arms"].figure.axes[0]
    middles = {text.get_text(): box for text, box in shown["arms"].boxes}
    for text, label in ("label 0", 0), ("label 1", 1):
        box = middles[text]
        at = ax.transData.inverted().transform([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
        assert np.argmin(np.hypot(*(X - at).T)) // 150 == label


def changes(model, points):
    """How often the answer of a network changes along a way."""
    return np.count_nonzero(np.diff(model(points).data[:, 0] > 0))


def test_the_regions_drawn_are_those_of_the_networks(shown, runs):
    X, panels = shown["spiral"].data
    assert np.array_equal(X, spiral()[0])
    for (title, logits), (name, run) in zip(panels.items(), runs.items(), strict=True):
        z = anatomy.MLP(*run.kept[2000])
        right = np.median([run.at(step)[1] for step in range(1810, 2001, 10)])
        assert title == f"{name}, {right:.0%} right"
        for i, j in [(3, 40), (30, 12), (50, 61)]:
            assert logits[i, j] == pytest.approx(z([[SIDE[j], SIDE[i]]]).data.item(), rel=1e-9)
    X, panels = shown["boundaries"].data
    assert np.array_equal(X, spiral()[0][::3]) and list(panels) == [f"step {k}" for k in (0, 50, 200, 500, 1000, 2000)]
    for title, logits in panels.items():
        z = anatomy.MLP(*runs["Adam"].kept[int(title.split()[1])])
        assert logits[3, 40] == pytest.approx(z([[SIDE[40], SIDE[3]]]).data.item(), rel=1e-9)


def test_the_curves_drawn_are_averages_of_the_losses(shown, runs):
    smooth, = shown["curves"].data
    for name, run in runs.items():
        for t in 1, 40, 2000:
            shares = 0.98 ** np.arange(t)[::-1]
            assert smooth[name][t - 1] == pytest.approx(run.losses[:t] @ shares / shares.sum(), rel=1e-9)


def committed(name):
    """The rows of a table in docs/generated, below its head."""
    rows = (ROOT / f"docs/generated/{name}.md").read_text("utf-8").splitlines()[2:]
    return [row.strip("| ").split(" | ") for row in rows]


def test_the_corrected_run_is_the_one_that_is_called_so(shown):
    corrected, uncorrected = shown["correction"].data
    for losses, row in zip((corrected, uncorrected), committed("correction"), strict=True):
        assert len(losses) == 200 and [f"{losses[t - 1]:.3f}" for t in (1, 10, 50, 200)] == row[2:]


def test_the_rings_of_the_race_are_where_the_loss_is_lowest(shown):
    loss, shares = made_race()
    accuracy, best = shown["race"].data
    assert np.array_equal(accuracy, shares) and best.tolist() == [2, 4, 0, 5]


def test_the_trial_is_drawn_as_it_went(shown):
    assert shown["trial"].data == (made_verdicts(),)


# What the docstrings say, which is all that some readers get

WORDS = {word: number for number, word in enumerate("""zero one two three four five six seven eight nine ten eleven
    twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty""".split()) if number != 1}
WORDS |= {f"twenty-{word}": 20 + WORDS[word] for word in ("two", "three", "four", "five")}


def said(name):
    """The docstring in one line."""
    return " ".join(DRAWN[name].__doc__.split())


def numbers(text):
    """All of its numbers, in figures or in words, in their order; "one" may be a pronoun and is left out."""
    found = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?|[a-z]+(?:-[a-z]+)?", text.lower())
    return [WORDS[word] if word in WORDS else float(word) for word in found if word in WORDS or word[0].isdigit()]


def test_numbers_are_read_in_figures_and_in_words():
    assert numbers("Two of 3.16 near 1e-5, twenty-three: 21 = 6*1 at 75%. Step 50.") == [
        2, 3.16, 1e-5, 23, 21, 6, 1, 75, 50]


def test_said_of_the_nudge(shown):
    h, errors = shown["nudge"].data
    text = said("draw_errors")
    assert numbers(text) == pytest.approx([1e-5, 1e-8], rel=1e-9)
    tips = dict(re.findall(r"(central|forward) nudge (?:makes )?a (?:flatter )?V with its tip near (?:h = )?(\S+?),? ",
                           text.replace(". ", " ")))
    # The processor decides between 1e-7 and 1e-8.
    assert h[np.argmin(errors["central"])] == pytest.approx(float(tips["central"]))
    assert abs(np.log10(h[np.argmin(errors["forward"])] / float(tips["forward"]))) < 1.1
    # The flatter V falls 10 times for 10 times the step, the other one 100 times.
    falls = {way: errors[way][1] / errors[way][3] for way in errors}
    assert falls["central"] == pytest.approx(1e4, rel=0.2) and falls["forward"] == pytest.approx(1e2, rel=0.2)
    assert "central nudge makes a V" in text and "forward nudge a flatter V" in text
    # The complex one falls, and stays.
    assert errors["complex"][0] > 1e3 * errors["complex"][3] and max(errors["complex"][8:]) < 1e-14


def test_said_of_the_graph_and_the_ledger(shown):
    first, second, third = shown["ledger"].figure.axes
    text = said("draw_ledger")
    assert numbers(text) == [3, 6, 5, 15, 10, 6, 15, 6, 21, 10, 6, 16]
    assert re.findall("([Lcd]) is taken", text) == [ax.get_title()[5] for ax in (first, second, third)]
    spots = {text.get_text(): text.get_position() for text in first.texts if ink(text) == BLACK and text.get_text()}
    beside = [{nearest(text.get_position(), spots): text.get_text() for text in ax.texts if ink(text) == ORANGE}
              for ax in (first, second, third)]
    pairs = re.findall(r"(\d+) for ([cd])|([ab])(?: gets)? (\d+)|= (\d+) for ([ab])", text)
    told = [dict([[(c, n), (a, m), (b, k)][1 if a else 2 if b else 0]]) for n, c, a, m, k, b in pairs]
    merged = [told[0] | told[1], told[2] | told[3], told[4] | told[5]]
    assert merged == [beside[0], {k: beside[1][k] for k in "ab"}, {k: beside[2][k].split(" = ")[1] for k in "ab"}]
    assert "15 + 6 = 21 for a and 10 + 6 = 16 for b" in text
    [ax] = shown["engine"].figure.axes
    text, said_there = said("draw_graph"), [label.get_text() for label in ax.texts]
    assert numbers(text) == [2, 3, 5, 6, 30, 1, 6, 5, 21, 6, 1, 5, 3, 16, 6, 1, 5, 2]
    values = dict(label.split(" = ") for label in said_there if re.match("[abcdL] = ", label))
    assert [values[name] for name in "abcdL"] == re.search("values ([\\d, ]+) from", text)[1].split(", ")
    sums = {label.split(" = ")[0]: set(label.split(" = ")[-1].split(" + ")) for label in said_there if "*" in label}
    for total, terms, name in re.findall(r"(\d+) = (\S+ \+ \S+) at ([ab])", text):
        a, b = float(values["a"]), float(values["b"])
        # L = (a + b) a b, by hand: along a it is 2 a b + b^2.
        assert float(total) == {"a": 2 * a * b + b * b, "b": 2 * a * b + a * a}[name]
        assert sums[total] == set(terms.split(" + "))
    assert {("1", "L"), ("6", "c"), ("5", "d")} <= set(re.findall(r"(\d+) at (\w)", text))


def test_said_of_the_jacobian_and_of_the_copies(shown):
    text = said("draw_jacobian")
    matrix, seeds, answers = shown["jacobian"].data
    assert numbers(text) == [*matrix.ravel(), *seeds[0], *answers[0], *seeds[1], *answers[1]]
    assert np.array_equal(answers[0], matrix[0]) and "picks the first" in text
    assert np.array_equal(answers[1], matrix.sum(axis=0)) and "adds both rows" in text
    text = said("draw_copies")
    row, copies, g, total = shown["unbroadcast"].data
    assert len(shown["unbroadcast"].figure.axes) == 2
    assert numbers(text) == [2, len(row), len(copies), len(row), *row, *g.ravel(), *total]
    assert f"the row {row[0]:.0f} " in text and f"into {total[0]:.0f} " in text


def test_said_of_the_losses(shown):
    z, patched, exact = shown["losses"].data
    text = said("draw_losses")
    panels, label, slope, ceiling, fallen = numbers(text)
    assert panels == len(shown["losses"].figure.axes)
    np.testing.assert_allclose(exact[0], np.logaddexp(0, z) - label * z, rtol=1e-9)
    assert exact[1][-1] == pytest.approx(slope) and patched[1][-1] == pytest.approx(fallen, abs=1e-9)
    assert f"{patched[0].max():.2f}" == f"{ceiling:.2f}" == f"{-np.log(1e-8):.2f}"
    assert re.search(f"loss from the logit rises .* slope stays {slope:.0f}.* patched loss stops at 18", text)
    assert min(np.diff(exact[0])) > 0 and exact[0][-1] == pytest.approx(z[-1])


def test_said_of_the_steps_and_walks(shown):
    r, valley, paths = shown["optimizers"].data
    text = said("draw_optimizers")
    *points, steps = numbers(text)
    assert points[1::2] == [1, 12, 1000] and r.argmax() + 1 == 12
    for number, t in zip(points[::2], points[1::2]):
        assert f"{r[int(t) - 1]:.2f}" == f"{number:.2f}" and f"{number:.2f} at step {t:.0f}" in text
    sgd, momentum = paths["SGD"], paths["Momentum"]
    assert len(sgd) == len(momentum) == steps + 1 and np.array_equal(sgd[0], momentum[0])
    # To and fro across the valley, and what "a good half", "wider" and "arrives" mean.
    assert (np.sign(sgd[:-1, 1]) == -np.sign(sgd[1:, 1])).all()
    assert 0.5 < 1 - sgd[-1, 0] < 0.6 and "SGD zigzags across the valley and has come a good half" in text
    assert abs(momentum[1:, 1]).max() > 2 * abs(sgd[:, 1]).max() and np.hypot(*momentum[-1]) < 0.05
    assert "Momentum swings wider and arrives" in text


def marks(text):
    """What is said of marks: (colour, shape)."""
    shapes = {"dot": "o", "cross": "x", "square": "s", "triangle": "^"}
    shades = {"blue": BLUE, "orange": ORANGE, "grey": GREY}
    return [(shades[color], shapes[shape])
            for color, shape in re.findall("(blue|orange|grey) (dot|cross|square|triangle)", text)]


def test_said_of_the_arms(shown):
    text = said("draw_arms")
    dots, crosses = shown["arms"].figure.axes[0].lines
    assert numbers(text) == [len(dots.get_xdata()), len(crosses.get_xdata()), 2]
    assert marks(text) == [(ink(dots), dots.get_marker()), (ink(crosses), crosses.get_marker())]
    # 2.9 pi, without noise near the middle: nearly once and a half.
    x, y = dots.get_xydata()[20:].T
    turns = np.ptp(np.unwrap(np.arctan2(y, x))) / (2 * np.pi) * 149 / 129
    assert 1.4 < turns < 1.5 and "nearly once and a half" in text


def boundaries_of(logits):
    """The lines where the logit is 0, and how often each turns around the middle, to and fro."""
    found = page().contour(SIDE, SIDE, logits, levels=[0]).allsegs[0]
    return [(line, abs(np.diff(np.unwrap(np.arctan2(*line.T[::-1])))).sum() / (2 * np.pi)) for line in found]


def test_said_of_the_regions(shown):
    X, panels = shown["spiral"].data
    text = said("draw_regions")
    assert numbers(text) == [len(np.unique(spiral()[1]))]
    bent, wound = re.search("one bent boundary across the plane for (.*), spiral bands for (.*), and for RMSProp bands "
                            "that its last steps may have cut", text).groups()
    seen = {title.split(",")[0]: logits for title, logits in panels.items()}
    # What RMSProp leaves differs from processor to processor, in one line or in two.
    assert seen.keys() == {*bent.split(" and "), wound, "RMSProp"}
    for name in seen.keys() - {"RMSProp"}:
        [(line, turns)] = boundaries_of(seen[name])
        # From edge to edge.
        assert abs(line[0]).max() == abs(line[-1]).max() == SIDE[-1]
        assert (name in bent, name in wound) == (turns < 1.5, turns > 1.5)


def test_said_of_adams_boundaries(shown, runs):
    X, panels = shown["boundaries"].data
    text = said("draw_boundaries")
    assert numbers(text) == [float(title.split()[1]) for title in panels] + [2, 2]
    assert len(X) * 3 == len(spiral()[0]) and "every third point" in text
    first, *_, last = panels.values()
    # At first it is the same along a ray, so what is there are wedges, at the end two bands that wind.
    z, ring = anatomy.MLP(*runs["Adam"].kept[0]), np.linspace(0, 2 * np.pi, 721)
    around = np.stack([np.cos(ring), np.sin(ring)], axis=1)
    np.testing.assert_allclose(z(2 * around).data, 2 * z(around).data, rtol=1e-9, atol=1e-12)
    assert changes(z, around) == 2 and "At first two wedges from the middle" in text
    assert [turns > 1.5 for line, turns in boundaries_of(last)] == [True]
    assert all(turns < 1.1 for line, turns in boundaries_of(first))


def test_said_of_the_curves(shown):
    smooth, = shown["curves"].data
    text = said("draw_curves")
    lines, near = numbers(text)
    assert lines == len(smooth)
    gap = abs(smooth["SGD"] - smooth["Momentum"])
    assert gap[100:].max() < 0.02 and "SGD and Momentum stay together" in text
    heights = {name: np.median(losses[-500:]) for name, losses in smooth.items()}
    assert f"{heights['SGD']:.1f}" == f"{heights['Momentum']:.1f}" == f"{near:.1f}"
    assert re.search(r"(\w+) is the lowest", text)[1] == min(heights, key=heights.get)
    jumps = {name: losses[:20].max() / losses[0] for name, losses in smooth.items()}
    rough = {name: abs(np.diff(losses[500:])).mean() for name, losses in smooth.items()}
    assert re.search(r"(\w+) starts with a jump and stays rough", text)[1] == max(jumps, key=jumps.get)
    assert max(rough, key=rough.get) == "RMSProp" and jumps["RMSProp"] > 3


def test_said_of_the_correction(shown):
    corrected, uncorrected = map(np.array, shown["correction"].data)
    text = said("draw_correction")
    assert numbers(text) == [len(corrected), 1, 50, 200, 1, 50, 200]
    assert uncorrected[0] > 2 * corrected[0] and "more than twice as high at step 1" in text
    told = dict((int(t), word) for t, word in re.findall(r"at step (\d+), so it is (ahead|behind)", text))
    told |= {int(t): word for word, t in re.findall(r"(ahead|behind) at step (\d+)", text)}
    assert told == {t: "behind" if uncorrected[t - 1] > corrected[t - 1] else "ahead" for t in (1, 50, 200)}


def drawn_race():
    """Read off the committed picture: optimizer -> (medians, worst, best), by rate."""
    text, found = (ROOT / "docs/generated/race.svg").read_text("utf-8"), {}
    scale = [(float(y), float(share)) for y, share in re.findall(r' y="([\d.]+)" [^>]*/><text[^>]*>(\d+)%', text)]
    # The panels of a row stand side by side, so the marks of the first one do for both.
    upper, lower = scale[:3], scale[3:]
    for name, color in COLORS.items():
        heights = np.array(lower if name in ("RMSProp", "Adam") else upper)[::-1]
        [line] = re.findall(rf'<path d="(m[^"]*)" clip-path="[^"]*" style="fill: none; [^"]*{color}', text)
        [band] = re.findall(rf'<path id="[^"]*" d="(m[^"]*z)" style="stroke: {color}; stroke-opacity', text)
        x, y = steps_of(line)
        at = x[0] + np.log(RATES / RATES[0]) / np.log(RATES[-1] / RATES[0]) * (x[-1] - x[0])
        edges = np.round(steps_of(band), 1)
        height = float(re.search('viewBox="0 0 [0-9.]+ ([0-9.]+)"', text)[1])
        ends = [edges[1][abs(edges[0] - here) < 0.3] + height for here in at]
        levels = np.interp(at, x, y), [max(end) for end in ends], [min(end) for end in ends]
        found[name] = [np.interp(level, *heights.T) for level in levels]
    return found


def steps_of(path):
    """The corners of a path of relative steps."""
    numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", path)]
    return np.cumsum(np.reshape(numbers, (-1, 2)), axis=0).T


def test_said_of_the_race():
    text, race = said("draw_race"), drawn_race()
    rates = {row[0]: row[1] for row in committed("best")}
    slow, fast = re.search(r"For (\w+ and \w+) that is .* For (\w+ and \w+) it is", text).groups()
    steps, seeds, best, below, up_to, best_fast, above, first, last, one, three, low = numbers(text)
    assert steps == len(batches()) and seeds == inspect.signature(anatomy.race).parameters["seeds"].default
    assert sorted(slow.split(" and ") + fast.split(" and ")) == sorted(OPTIMIZERS)
    for name in slow.split(" and "):
        middle, worst, top = race[name]
        assert float(rates[name]) == best
        # Up to the last rate of which this is true.
        assert RATES[top < below].max() == up_to and top[RATES <= up_to].max() < below
    for name in fast.split(" and "):
        middle, worst, top = race[name]
        assert float(rates[name]) == best_fast
        assert {row[0]: row[1] for row in committed("good")}[name] == "0.01, 0.03, 0.1"
        assert RATES[worst > above].tolist() == [rate for rate in RATES if first <= rate <= last]
        assert RATES[middle < low].tolist() == [one, three]
    assert "the median of ten seeds as a line, from the worst to the best as a band, and a ring at the best" in text
    assert "below 75% up to" in text and "above 95% from" in text and "their medians are below 60%" in text


def test_the_rings_and_bands_of_the_committed_race_are_those_of_its_tables():
    for row in committed("best") + committed("race"):
        name, rate, _, share = row
        middle, worst, top = (shares[RATES == float(rate)].item() for shares in drawn_race()[name])
        median, low, high = map(float, re.findall(r"\d+", share))
        assert abs(middle - median) < 0.6 and low <= worst + 0.1 < low + 5.1 and high - 5.1 < top - 0.1 <= high


def test_said_of_the_trial():
    text, rows = said("draw_trial"), committed("trial")
    head = (ROOT / "docs/generated/trial.md").read_text("utf-8").splitlines()[0].strip("| ").split(" | ")
    faults, *slipped = np.sum([list(map(int, row[1:])) for row in rows], axis=0).tolist()
    assert head[2:] == list(anatomy.CHECKS) and faults == len(anatomy.FAULTS)
    through = dict(zip(head[2:], slipped))
    assert numbers(text) == [faults, len(anatomy.CHECKS), through["shapes"], through["adjoint"], through["network"],
                             through["ones"], through["cover"]]
    assert through["network"] == through["Adam"] and "through network and Adam six each" in text
    assert re.findall("(?i)through (shapes|adjoint|network|ones)|column of (cover)", text) == [
        ("shapes", ""), ("adjoint", ""), ("network", ""), ("ones", ""), ("", "cover")]
    assert rows[0][0] == "program" and int(rows[0][-1]) == through["cover"] and "the faults of the program" in text
    # The words for the marks are those of the picture.
    told = {word: mark for word, mark in zip(["passes", "caught", "raises"], marks(text), strict=True)}
    assert told == {"passes": (ORANGE, "s"), "caught": (GREY, "o"), "raises": (GREY, "^")}
    assert re.search("square marks a fault that slips .* dot one that is caught, .* triangle one that raises", text)


def test_each_function_that_draws_is_judged_by_its_words():
    judged = set(re.findall(r'said\("(draw_\w+)"\)', Path(__file__).read_text("utf-8")))
    assert judged == set(DRAWN)
