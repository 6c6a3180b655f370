"""The story under every Python found here, and under every kernel this machine can run.

    python tests/matrix.py [WORD...]     all circumstances, or those that contain a word

Each Python from 3.10 to 3.14 gets an environment of its own in .cache/matrix, 3.10 with
the oldest numpy and matplotlib that we allow. There the chapters' tests run too. Exit
code 1 if a run fails or prints another text than the plain one does here.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path

import numpy

from conftest import ROOT, SCRIPT, surroundings

CHAPTERS = "nudge engine unbroadcast rules gradcheck optimizers spiral".split()
OLDEST = {"3.10": ["numpy==1.26.*", "matplotlib==3.8.*", "pyparsing==3.1.*"]}
CORES = "Prescott Nehalem Sandybridge Haswell Zen SkylakeX Cooperlake SapphireRapids ARMV8 NEOVERSEN1 NEOVERSEV1"
MODULES = "import numpy, matplotlib as m; print('numpy', numpy.__version__, 'matplotlib', m.__version__)"
# Multiply, then say which kernel did it; one that this processor has not dies of it.
KERNEL = """import ctypes, glob, numpy
for n in 1, 7, 300: numpy.ones((n, n)) @ numpy.ones((n, n)) @ numpy.ones(n)
for path in glob.glob(numpy.__path__[0] + ".libs/*openblas*"):
    name = ctypes.CDLL(path).scipy_openblas_get_corename64_
    name.restype = ctypes.c_char_p
    print(name().decode())"""
STRICT = "-W", "error::DeprecationWarning", "-W", "error::PendingDeprecationWarning"


def run(*command, **extra):
    return subprocess.run([*map(str, command)], capture_output=True, encoding="utf-8", cwd=ROOT,
                          stdin=subprocess.DEVNULL, timeout=1800, env=surroundings(**extra))


def environment(version):
    """(its Python or None, what went wrong) of a Python of this version, wherever it is."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    if shutil.which("uv"):
        found.append(run("uv", "python", "find", "--no-python-downloads", version).stdout.strip())
    asked = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    path = next((p for p in found if p and run(p, "-c", asked).stdout.strip() == version), None)
    python = ROOT / ".cache" / "matrix" / version / "bin" / "python"
    if path and not python.exists():
        run(path, "-m", "venv", python.parents[1])
    made = path and run(python, "-m", "pip", "install", "-qU", "--disable-pip-version-check", "pytest<10",
                        *OLDEST.get(version, ["numpy<3", "matplotlib<4"]))
    return path and python, made.stderr if made and made.returncode else ""


def told(python, **extra):
    """(the text, what went wrong) of the whole story with pictures."""
    with tempfile.TemporaryDirectory() as out:
        result = run(python, *STRICT, SCRIPT, "all", "--out", out, **extra)
    return result.stdout, result.stderr or f"exit code {result.returncode}" * bool(result.returncode)


def row(name, version="", **extra):
    """The line for a circumstance, and what there is to say below it."""
    python, wrong = environment(version) if version else (sys.executable, "")
    if not python:
        return f"{name:26} not on this machine", ""
    text, failed, tests = *told(python, **extra), "-"
    if version:
        result = run(python, *STRICT, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider",
                     *(ROOT / "tests" / f"test_{chapter}.py" for chapter in CHAPTERS))
        tests = re.sub(r" in .*", "", (result.stdout.splitlines() or ["none ran"])[-1])
        wrong += (result.stdout[-2000:] + result.stderr[-1000:]) * bool(result.returncode)
    gap = "\n".join([*unified_diff(PLAIN.splitlines(), text.splitlines(), "plain", name, n=0, lineterm="")][:20])
    versions = run(python, "-c", MODULES).stdout.strip()
    return f"{name:26} {versions:34} {tests:22} {'different' if gap else 'same'}", wrong + failed + gap


def circumstances():
    """Name and settings of each."""
    yield from ((f"Python 3.{n}", dict(version=f"3.{n}")) for n in range(10, 15))
    cores = {run(sys.executable, "-c", KERNEL, OPENBLAS_CORETYPE=c).stdout.strip(): c for c in CORES.split()[::-1]}
    yield from ((f"OpenBLAS {name}", dict(OPENBLAS_CORETYPE=c)) for name, c in cores.items() if name)
    umath = (getattr(numpy, "_core", None) or numpy.core)._multiarray_umath
    simd = " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name])
    yield from [(f"numpy without {simd}", dict(NPY_DISABLE_CPU_FEATURES=simd))] * bool(simd)
    yield from ((f"threads {n}", dict(OPENBLAS_NUM_THREADS=n)) for n in "12")


if __name__ == "__main__":
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    PLAIN, bad = told(sys.executable)
    chosen = [c for c in circumstances() if not sys.argv[1:] or any(word in c[0] for word in sys.argv[1:])]
    print(f"{'circumstance':26} {'versions':34} {'tests':22} text", bad, sep="\n" if bad else "", flush=True)
    with ThreadPoolExecutor(2) as pool:
        for line, remark in pool.map(lambda c: row(c[0], **c[1]), chosen):
            print(line, *remark.splitlines(), sep="\n    ", flush=True)
            bad = bad or remark
    sys.exit(bool(bad))
