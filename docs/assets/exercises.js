// Below each exercise that asks for numbers: a field for an answer, which is judged as `check` does.
// Without this script the question, the hint and the answer are there all the same.

function numbers(text) {
  const words = text.replace(/\u2212/g, "-").replace(/[\[\]()]/g, " ").split(/[\s,;]+/).filter(word => word)
  return words.map(word => {
    const truth = {true: 1, false: 0}[word.toLowerCase()]
    const parts = word.split("/").map(part => part === "" ? NaN : Number(part))
    return truth ?? (parts.length === 2 ? parts[0] / parts[1] : parts.length === 1 ? parts[0] : NaN)
  })
}

function judge(text, right, exact) {
  const given = numbers(text)
  if (given.length === 0 || given.some(Number.isNaN)) {
    return "A number is wanted, such as 0.5, 1/2 or 1e-3, or several with commas between them."
  }
  if (/\d,\d/.test(text) && given.length !== right.length) {
    return "Write fractions with a point, such as 0.5."
  }
  if (given.length !== right.length) {
    return `Not yet: ${right.length === 1 ? "one number is" : right.length + " numbers are"} wanted.`
  }
  const near = (a, b) => Math.abs(a - b) <= (exact ? 0 : 1e-8 + 0.01 * Math.abs(b))
  return given.every((a, i) => near(a, right[i])) ? "\u2713 Right." : "Not yet."
}

for (const answer of document.querySelectorAll(".exercise [data-right]")) {
  const name = answer.parentElement.querySelector("strong").textContent
  const right = numbers(answer.dataset.right)
  const form = document.createElement("form")
  form.innerHTML = `<input autocomplete="off" aria-label="Your answer to ${name}"><button>Check</button><output></output>`
  form.addEventListener("submit", event => {
    event.preventDefault()
    const said = judge(form.querySelector("input").value, right, answer.dataset.exact === "true")
    form.querySelector("output").textContent = said
    form.classList.toggle("right", said.endsWith("Right."))
  })
  answer.parentElement.insertBefore(form, answer.parentElement.querySelector("details"))
}
