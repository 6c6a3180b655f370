"""The questions of the story, as cells of the notebook and of the page: what is asked stands in
the open, and each hint and each answer in a fold of its own. All words and numbers are the run's."""
import html, re
from nbformat.v4 import new_markdown_cell

# Run as the last cell of the story; what a story lacks is left out.
FACTS = """
import json
told = globals()
breakages, numbers, programs = [told.get(table, {}) for table in ("BREAKAGES", "NUMBERS", "PROGRAMS")]
exercises = {}
for name, exercise in {**numbers, **programs}.items():
    exercises[name] = {"question": exercise.question, "hint": exercise.hint}
for name in numbers:
    right = np.asarray(numbers[name].function())
    answer = ", ".join(f"{one:.4g}" if right.dtype.kind == "f" else str(one) for one in right.ravel())
    exercises[name] |= {"right": right.ravel().tolist(), "exact": right.dtype.kind != "f",
                        "answer": answer, "reason": REASONS[name]}
print(json.dumps({"breakages": {name: " ".join(told.question.split()) for name, told in breakages.items()},
                  "exercises": exercises}))
"""

def fold(summary, text, **data):
    """A fold of its own for one text."""
    marks = "".join(f' data-{key}="{html.escape(str(value))}"' for key, value in data.items())
    return f"<details{marks}><summary>{summary}</summary><p>{html.escape(text)}</p></details>"

def number(name, fact):
    """An exercise that asks for numbers; exercises.js lets the page judge an answer."""
    right = ", ".join(map(repr, fact["right"]))
    return (f'<div class="exercise" id="{name}"><p><strong>{name}</strong> {html.escape(fact["question"])}</p>'
            + fold("Hint", fact["hint"])
            + fold("Answer", f'{fact["answer"]}: {fact["reason"]}.', right=right, exact=str(fact["exact"]).lower())
            + "</div>")

def predict(name, question):
    """A question, and for those who read the notebook itself, where its answer is."""
    return (f'<div class="question" id="{name}"><p><strong>Predict: {name}.</strong> {html.escape(question)}</p>'
            '<p class="notebook">The answer is folded into the cell below. Its dots open it, and so does running it.</p></div>')

def with_hints(text, exercises):
    """The texts of the programs, each with its hint below it."""
    parts = re.split(r"(?m)^(?=#### \w+\.\d)", text)
    for i, part in enumerate(parts):
        name = re.match(r"#### (\w+\.\d)", part)
        if name:
            hint = fold("Hint", exercises[name[1]]["hint"])
            below = re.search(r"(?m)^### ", part)
            at = below.start() if below else len(part)
            parts[i] = f'{part[:at].rstrip()}\n\n<div class="exercise">{hint}</div>\n\n{part[at:]}'
    return "".join(parts)

def asked(cells, facts):
    """The cells, with a cell that asks before each that answers."""
    told = []
    for cell in cells:
        broken = re.findall(r'(?m)^@breakage\("(\w+)"\)', cell.source)
        numbers = [name.replace("_", ".") for name in re.findall(r"(?m)^def (\w+_\d)\(\):", cell.source)]
        numbers = [name for name in numbers if "right" in facts["exercises"].get(name, {})]
        if cell.cell_type == "markdown":
            cell.source = with_hints(cell.source, facts["exercises"])
        elif broken:
            told += [new_markdown_cell(predict(name, facts["breakages"][name])) for name in broken]
        else:
            told += [new_markdown_cell(number(name, facts["exercises"][name])) for name in numbers]
        told.append(cell)
    return told
