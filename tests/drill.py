"""Tell a chapter in bad surroundings: a line for each, with what happened there.

    python tests/drill.py

Exit code 1 if anything is worse than one clear sentence: a traceback, half a
file, or exit code 0 after a failure.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conftest import ROOT, SCRIPT, surroundings

CODE = "import os, runpy, sys; {}; sys.argv = ['x', 'nudge']; runpy.run_path(%r, run_name='__main__')" % str(SCRIPT)
TEXT = {}
bad = 0


def start(*args, shell="", cwd=None, **extra):
    """Python with these arguments, under sh with this redirection if there is one."""
    command = [*(["sh", "-c", shell] if shell else []), sys.executable, *map(str, args)]
    return subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            encoding="utf-8", errors="replace", env=surroundings(**extra))


def tell(name, process, out=None, codes=(0,)):
    """Print what happened, and count it if it is bad."""
    global bad
    text, complaint = process.communicate(timeout=300)
    lines, code = complaint.splitlines(), process.returncode
    half = [p.name for p in out.iterdir() if p.suffix not in (".svg", ".md") or not
            p.read_text("utf-8").rstrip().endswith(("</svg>", "|"))] if out and out.is_dir() else []
    whole = text == TEXT.setdefault("plain", text)
    fine = code in codes and len(lines) <= 1 and not half and "Traceback" not in complaint
    fine = fine and (code != 0 or whole and not lines or "no picture" in text)
    said = lines[0][:90] if lines else "as everywhere" if code == 0 and whole else (
        "".join(line for line in text.splitlines() if "no picture" in line) or "stopped without a word")
    print(f"{'  ' if fine else 'NO'} {name:34} {code:4}  {said}", *half, *(lines[-1:] if not fine else []), flush=True)
    bad += not fine


def drill(base):
    nudge, redirected = (SCRIPT, "nudge"), 'exec "$0" "$@" '
    tell("plain", start(*nudge))
    for name, extra in (("ASCII", dict(PYTHONIOENCODING="ascii:strict")),
                        ("LC_ALL=C", dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")),
                        ("no HOME", dict(HOME="/nowhere", XDG_CONFIG_HOME="", XDG_CACHE_HOME="")),
                        ("no display, bad MPLBACKEND", dict(MPLBACKEND="nothing")),
                        ("hash seed", dict(PYTHONHASHSEED="7"))):
        tell(name, start(*nudge, "--out", base / name, **extra), base / name)
    (base / "none").mkdir()
    (base / "none" / "matplotlib.py").write_text("raise ImportError\n")
    (base / "matplotlibrc").write_text("axes.grid: True\nsvg.fonttype: none\nbackend: pdf\n")
    tell("no matplotlib", start(*nudge, "--out", base / "text", PYTHONPATH=str(base / "none")), base / "text")
    (base / "less").mkdir()
    (base / "less" / "numpy.py").write_text("raise ImportError('No module named numpy')\n")
    tell("no numpy", start(*nudge, PYTHONPATH=str(base / "less")), codes=(1,))
    tell("a stranger's matplotlibrc", start(*nudge, "--out", base / "rc", cwd=base), base / "rc")
    tell("removed working directory", start("-c", CODE.format("os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')"),
                                            cwd=base))
    tell("read-only working directory", start(*nudge, cwd="/proc/self"))
    for flags in ["-O"], ["-OO"], ["-W", "error", "-bb"], ["-X", "dev"]:
        tell(" ".join(flags), start(*flags, *nudge, "--out", base / flags[-1]), base / flags[-1])
    (base / "a link.py").symlink_to(SCRIPT)
    tell("a symlink, another directory", start("a link.py", "nudge", cwd=base))
    tell("python -m", start("-m", "anatomy", "nudge", cwd=ROOT))
    tell("runpy", start("-c", CODE.format("pass")))
    tell("closed stdout", start(*nudge, shell=redirected + ">&-"), codes=(1,))
    if os.path.exists("/dev/full"):
        tell("full device", start(*nudge, shell=redirected + ">/dev/full"), codes=(1,))
    tell("closed pipe", start("-u", *nudge, "engine", shell='exit $( { { "$0" "$@"; echo $? >&3; } | head -n 1 '
                                                              '>/dev/null; } 3>&1 )'), codes=(141,))
    (base / "file").write_text("mine")
    for name, out, codes in (("onto a file", base / "file", (1,)), ("below a file", base / "file" / "x", (1,)),
                             ("missing folders", base / "a" / "b", (0,)), ("spaces", base / "a b c", (0,)),
                             ("not ASCII", base / "sch\u00f6n", (0,)), ("unwritable", Path("/proc/out"), (1,))):
        tell(f"--out {name}", start(*nudge, "--out", out), out, codes)
    tell("--out ''", start(*nudge, "--out", "", cwd=base), codes=(1,))
    (tiny := base / "tiny").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "none", tiny], capture_output=True).returncode == 0:
        tell("--out on a full disk", start(*nudge, "--out", tiny), tiny, (1,))
        subprocess.run(["umount", tiny])
    two = [start(*nudge, "--out", base / "two") for _ in "12"]
    tell("two processes on one --out", two[0])
    tell("the other one", two[1], base / "two")
    for name, code in ("SIGINT", 130), ("SIGTERM", 143):
        process = start(*nudge, "engine", "rules", "--out", base / name)
        while not (base / name).exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(getattr(signal, name))
        tell(f"{name} while writing", process, base / name, (code,))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        drill(Path(folder))
    sys.exit(bool(bad))
