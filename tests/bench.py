"""What a training step costs, beside the limit and the peers: make bench.

One step of chapter 7 (batch, forward, backward, optimizer) in microseconds of
CPU time, on one thread. The limit is numpy with a backward pass derived on
paper and no graph. All run in one process in random turn; `ratio` is the
median over turns of a peer's time over the limit's in the same turn, so that
the drift of a busy machine cancels. Before that, at a gentle rate, a peer has
to reproduce the limit's first losses to 1e-9, or it is WRONG whatever its
speed. Peers that are not installed are left out.
"""
import os

for library in "OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM":
    os.environ[library + "_NUM_THREADS"] = "1"

import gc, random, resource, subprocess, sys, tempfile, tracemalloc
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

ROOT = Path(os.environ.get("ANATOMY", Path(__file__).parents[1])).resolve()
sys.path.insert(0, str(ROOT))
from anatomy import (MLP, OPTIMIZERS, Tensor, batches, bce_with_logits, patched_bce,
                     spiral, weights)

TURNS, STEPS, EPS = 15, 100, 1e-8
(X, Y), ORDER = spiral(1), batches(1, TURNS * STEPS)

def start():
    """The four parameters before the first step."""
    return [p.data for p in MLP(*weights(1)).params]

# ------------------------------------------------------------------ the limit
def update(rule, lr, params):
    """The optimizers as a reader would write them, on a list of arrays."""
    m, v, t, b = [0.0] * 4, [0.0] * 4, 0, 0.99 if rule == "RMSProp" else 0.999

    def step(grads):
        nonlocal t
        t += 1
        for i, (p, g) in enumerate(zip(params, grads)):
            if rule in ("Momentum", "Adam"): m[i] = 0.9 * m[i] + (1 - 0.9) * g
            if rule in ("RMSProp", "Adam"): v[i] = b * v[i] + (1 - b) * g * g
            p -= (lr * g if rule == "SGD" else lr * m[i] if rule == "Momentum"
                  else lr * g / (np.sqrt(v[i]) + EPS) if rule == "RMSProp"
                  else lr * (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - b**t)) + EPS))
    return step

def limit(rule, lr, patched):
    W1, b1, W2, b2 = params = start()
    step = update(rule, lr, params)

    def one(i):
        x, y = X[ORDER[i]], Y[ORDER[i]]
        a = x @ W1 + b1
        h = np.maximum(a, 0)
        z = h @ W2 + b2
        if patched:
            p, q = (p := 1 / (1 + np.exp(-z))), 1 - p
            loss = -(y * np.log(p + EPS) + (1 - y) * np.log(q + EPS)).sum() / len(x)
            dz = ((1 - y) / (q + EPS) - y / (p + EPS)) * p * q / len(x)
        else:
            s = np.logaddexp(0, z)
            loss = (s - y * z).sum() / len(x)
            dz = (np.exp(z - s) - y) / len(x)
        da = (dz @ W2.T) * (a > 0)
        step([x.T @ da, da.sum(0, keepdims=True), h.T @ dz, dz.sum(0, keepdims=True)])
        return loss
    return one

def ours(rule, lr, patched):
    model = MLP(*weights(1))
    optimizer = OPTIMIZERS[rule](model.params, lr)

    def one(i):
        z, y = model(X[ORDER[i]]), Y[ORDER[i]]
        loss = patched_bce(z, y).mean() if patched else bce_with_logits(z, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.data
    return one

def hips(rule, lr, patched):
    import autograd.numpy as anp
    from autograd import value_and_grad
    step = update(rule, lr, params := start())

    def objective(params, x, y):
        W1, b1, W2, b2 = params
        z = anp.dot(anp.maximum(anp.dot(x, W1) + b1, 0), W2) + b2
        if not patched: return anp.mean(anp.logaddexp(0, z) - y * z)
        p = 1 / (1 + anp.exp(-z))
        return -anp.mean(y * anp.log(p + EPS) + (1 - y) * anp.log(1 - p + EPS))
    both = value_and_grad(objective)

    def one(i):
        loss, grads = both(params, X[ORDER[i]], Y[ORDER[i]])
        step(grads)
        return loss
    return one

def torch(rule, lr, patched):
    import torch
    torch.set_num_threads(1)
    params = W1, b1, W2, b2 = [torch.tensor(p, requires_grad=True) for p in start()]
    optimizer = {"SGD": lambda: torch.optim.SGD(params, lr),
                 "Momentum": lambda: torch.optim.SGD(params, lr * (1 - 0.9), momentum=0.9),
                 "RMSProp": lambda: torch.optim.RMSprop(params, lr, alpha=0.99, eps=EPS),
                 "Adam": lambda: torch.optim.Adam(params, lr, eps=EPS)}[rule]()
    tX, tY, order = map(torch.tensor, (X, Y, ORDER))
    exact = torch.nn.BCEWithLogitsLoss()

    def one(i):
        x, y = tX[order[i]], tY[order[i]]
        z = torch.relu(x @ W1 + b1) @ W2 + b2
        p = torch.sigmoid(z) if patched else None
        loss = (-(y * (p + EPS).log() + (1 - y) * (1 - p + EPS).log()).mean() if patched
                else exact(z, y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return one

PEERS = {"limit": limit, "anatomy": ours, "PyTorch eager": torch, "HIPS autograd": hips}

def race(rule, patched):
    """Microseconds a step for each peer, turn by turn; NaN for a wrong one."""
    runs, right = {}, None
    for name, make in PEERS.items():
        try:
            trial = make(rule, 0.001, patched)
        except ImportError:
            continue
        losses = [float(trial(i)) for i in range(20)]
        right = right or losses
        runs[name] = np.allclose(losses, right, rtol=1e-9, atol=0) and make(rule, 0.1, patched)
    times = {name: np.full(TURNS, np.nan) for name in runs}
    gc.collect()
    for turn in range(TURNS):
        for name in random.sample([name for name in runs if runs[name]], k=sum(map(bool, runs.values()))):
            clock = process_time()
            for i in range(turn * STEPS, (turn + 1) * STEPS):
                runs[name](i)
            times[name][turn] = (process_time() - clock) / STEPS * 1e6
    return times

def report(title, times):
    print(f"\n{title:16}      min   median   ratio")
    for name, found in times.items():
        figures = f"{min(found):9.1f}{median(found):9.1f}{median(found / times['limit']):8.2f}"
        print(f"{name:16}{'    WRONG' if 'nan' in figures else figures}", flush=True)

def table(patched):
    """Each optimizer, and the four together."""
    total = {}
    for rule in OPTIMIZERS:
        times = race(rule, patched)
        report(rule, times)
        total = {name: total.get(name, 0.0) + found for name, found in times.items()}
    report("all four", total)

# ------------------------------------------------------- chains, memory, start
def chains():
    """A million operations against a thousand, with the collector off."""
    for n, times in (1_000, 200), (1_000_000, 2):
        spent = []
        for _ in range(times):
            clock = process_time()
            sum([Tensor(1.0)] * n).backward()
            spent.append((process_time() - clock) / n * 1e6)
        print(f"chain of {n:9,}: {min(spent):.2f} us a node, built, settled and freed")
    tracemalloc.start()
    held = (sum([Tensor(1.0)] * 100_000), tracemalloc.get_traced_memory()[0])[1]
    print(f"{held / 1e5:.0f} bytes a node, {tracemalloc.get_traced_memory()[0] / 1e5:.1f} once",
          f"the chain is dropped; recursion limit {sys.getrecursionlimit()}")
    tracemalloc.stop()
    x, clock = Tensor(1.0), process_time()
    sum(x * 1.0 for _ in range(100_000)).backward()
    print(f"100,000 uses of one tensor: {(process_time() - clock) * 10:.2f} us a use")

def memory(steps=20_000):
    """Growth of the process over many steps, with the collector off."""
    one, peak = ours("Adam", 0.1, False), []
    for i in range(steps + 1000):
        one(i % len(ORDER))
        if i in (1000, steps + 999): peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    print(f"{steps:,} steps: peak memory grows by {(peak[1] - peak[0]) / 1024:.1f} MB,",
          f"the collector would have found {gc.collect()} objects")

def start_up():
    """Importing it against importing numpy; the whole story."""
    with tempfile.TemporaryDirectory() as cache:
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

        def wall(*args):
            clock = perf_counter()
            subprocess.run([sys.executable, *args], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                           env={**kept, "PYTHONPYCACHEPREFIX": cache})
            return perf_counter() - clock
        bare, own = np.array([[1000 * wall("-c", f"import {name}") for name in ("numpy", "anatomy")]
                              for _ in range(15)]).T
        print(f"import numpy {min(bare):.0f} ms, import anatomy {min(own):.0f} ms,",
              f"{median(own - bare):.0f} ms more")
        print(f"python anatomy.py all: {wall('anatomy.py', 'all'):.1f} s")

if __name__ == "__main__":
    print(f"numpy {np.__version__}, python {sys.version.split()[0]}, one thread,",
          f"{TURNS} turns of {STEPS} steps, microseconds a step")
    for patched, loss in (False, "The loss from the logit"), (True, "The loss log(p + 1e-8)"):
        print(f"\n{loss}")
        table(patched)
    print("\nWith the garbage collector off")
    gc.disable(), chains(), memory(), start_up()
