PYTHON ?= python3
PY     := .venv/bin/python
RUN    := .venv/run
ALL    := .venv/all
PEERS  := .cache/peers/all
OLD    := .cache/oldest/all
QUICK  := nudge engine unbroadcast rules gradcheck optimizers frameworks exercises answers
# pip's newest for Linux comes with CUDA; torch==2.13.0+cpu is enough, and known to
# agree, where pip is told of PyTorch's index of CPU builds
TORCH  ?= torch
export NO_MKDOCS_2_WARNING := 1

help:      ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile
run: $(RUN)       ## tell the whole story in the terminal
	$(PY) anatomy.py all
test: $(ALL)      ## prove it
	$(PY) -m pytest -q --maxfail=5 --tb=short tests
figures: $(RUN)   ## draw the pictures and write the tables in docs/generated
	$(PY) anatomy.py all --out docs/generated
	$(PY) docs/pictures.py docs/generated
golden: $(RUN)    ## write what the story prints, which the tests hold it to
	$(PY) anatomy.py all > tests/golden/story.new
	mv tests/golden/story.new tests/golden/story.txt
docs: $(ALL)      ## build the site in site/
	$(PY) -m mkdocs build --strict
serve: $(ALL)     ## show the site while it is written, at http://127.0.0.1:8000
	$(PY) -m mkdocs serve
publish: $(ALL)   ## put the site on GitHub Pages; SITE_URL=https://... is its address, REPO_URL=https://... the source's
	$(PY) -m mkdocs gh-deploy --strict
bench: $(ALL)     ## time a training step beside the limit and the peers
	$(PY) tests/bench.py
matrix: $(ALL)    ## tell and test it under every Python and kernel there is
	$(PY) tests/matrix.py
rounding: $(ALL)  ## tell it on processors that round differently
	$(PY) tests/rounding.py all
oldest: $(OLD)    ## tell it with the oldest numpy that there is for this Python
	$(PY) anatomy.py $(QUICK) > .cache/oldest/new.txt
	.cache/oldest/bin/python anatomy.py $(QUICK) > .cache/oldest/old.txt
	cmp .cache/oldest/new.txt .cache/oldest/old.txt
	.cache/oldest/bin/python -c 'import numpy; print("the same text with numpy", numpy.__version__)'
mutate: $(ALL)    ## forget or change one thing at a time, and see whether a test notices (two hours; not on Windows)
	$(PY) tests/mutate.py delete
	$(PY) tests/mutate.py
peers: $(PEERS)   ## hold every operation, and examine, against other engines
	.cache/peers/bin/python -m pytest -q -p no:cacheprovider tests/peers.py
clean:            ## remove what make and the tests made, but not docs/generated
	rm -rf .venv .cache site .pytest_cache __pycache__ tests/__pycache__ docs/__pycache__

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("Python 3.10 or later is needed, and this is \
	%d.%d. Where there is a later one: make run PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Debian, Ubuntu: apt install python3-venv"; exit 1; }
$(RUN): docs/requirements.txt | .venv/bin/python
	grep -E '^(numpy|matplotlib)' docs/requirements.txt > .venv/run.txt
	$(PY) -m pip install -q --disable-pip-version-check -r .venv/run.txt
	touch $@
$(ALL): docs/requirements.txt $(RUN)
	$(PY) -m pip install -q --disable-pip-version-check -r docs/requirements.txt
	touch $@
$(PEERS): Makefile
	$(PYTHON) -m venv .cache/peers
	.cache/peers/bin/python -m pip install -q --disable-pip-version-check numpy pytest autograd micrograd mygrad "$(TORCH)"
	touch $@
# For Python 3.10 to 3.12 that is 1.26, the oldest that we allow; later ones have no wheel of it.
$(OLD): Makefile $(RUN)
	$(PYTHON) -m venv .cache/oldest
	.cache/oldest/bin/python -m pip install -q --disable-pip-version-check --only-binary numpy "numpy==1.26.*" \
		|| .cache/oldest/bin/python -m pip install -q --disable-pip-version-check --only-binary numpy "numpy<2.3"
	touch $@

.PHONY: help run test figures docs serve publish bench matrix rounding oldest peers mutate golden clean
