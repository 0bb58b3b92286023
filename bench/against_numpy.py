#!/usr/bin/env python3
"""Element-wise ops, reductions and products against numpy, in turns, in one run.

    cargo build --release && target/release/steer calibrate
    python3 -m venv .venv && .venv/bin/pip install numpy
    .venv/bin/python bench/against_numpy.py [--json] [steer's path]

Each round times numpy (output reused) and then `steer run` on the same workload; the ratio is numpy's best round
over steer's: above 1, steer is ahead. numpy's threads spin for a while after a product, so that each is waited out. Steer's time is that of the kernel it chose, timed alone: a call through the
runtime adds what `steer bench call` says, numpy's times have its own call in them. `of memory` compares the bytes that must
move with the best of the machine's measured read, copy and streaming bandwidths in main memory.
"""
import json, subprocess, sys, time
import numpy as np

ROUNDS = 3
SIZES = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
PRODUCTS = [(n, n, n) for n in (1, 10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048)] + [(1, 4096, 4096), (8, 4096, 4096), (4096, 64, 4096)]
UNARY, BINARY, REDUCE = ["sqrt", "exp", "tanh", "sin"], ["add", "mul", "div"], ["sum", "max"]
NUMPY = {"mul": np.multiply, "div": np.divide, "max": np.max, **{n: getattr(np, n) for n in ("sqrt", "exp", "tanh", "sin", "add", "sum")}}


def best_of(run, elements):
    run()
    batch = max(1, min(2000, int(2e7 // elements)))
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(batch):
            run()
        best = min(best, (time.perf_counter() - started) / batch)
    return best


def numpy_product(dtype, m, k, n):
    a, b = np.full((m, k), 0.5, dtype), np.full((k, n), 0.5, dtype)
    out = np.empty((m, n), dtype)
    best = best_of(lambda: np.matmul(a, b, out=out), m * k * n / 8 + 100)
    time.sleep(0.25)
    return best


def numpy_seconds(op, n):
    a = np.linspace(0.1, 0.9, n, dtype=np.float32)
    f = NUMPY[op]
    if op in REDUCE:
        run = lambda: f(a)
    elif op in BINARY:
        b, out = a[::-1].copy(), np.empty_like(a)
        run = lambda: f(a, b, out=out)
    else:
        out = np.empty_like(a)
        run = lambda: f(a, out=out)
    return best_of(run, n)


def steer_seconds(steer, workload):
    out = subprocess.run([steer, "run", workload, "--repeat", "7", "--json"], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{workload}: {out.stderr.strip()}")
    row = json.loads(out.stdout)
    return row["best_s"], row["id"]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--json"]
    steer = arguments[0] if arguments else "target/release/steer"
    devices = subprocess.run([steer, "devices", "--json"], capture_output=True, text=True).stdout
    levels = json.loads(devices)["devices"][0]["rates"]["levels"]
    memory = max((rate for kind in ("read", "copy", "stream") for rate in levels[-1][kind]), default=None) if levels else None
    rows = []

    def compare(workload, numpy, moved=0):
        ours, theirs, kernel = float("inf"), float("inf"), ""
        for _ in range(ROUNDS):
            theirs = min(theirs, numpy())
            took, kernel = steer_seconds(steer, workload)
            ours = min(ours, took)
        share = moved / ours / memory if memory and moved > 200e6 else None
        rows.append({"workload": workload, "kernel": kernel, "steer_s": ours, "numpy_s": theirs, "ratio": theirs / ours, "of_memory": share})
        if "--json" not in sys.argv:
            note = f"{share:10.2f}" if share else " " * 10
            print(f"{workload:<36}{ours * 1e6:12.3f} µs {theirs * 1e6:12.3f} µs {theirs / ours:8.2f}{note}  {kernel}", flush=True)

    for op in UNARY + BINARY + REDUCE:
        for n in SIZES:
            operands = 1 if op in REDUCE else 3 if op in BINARY else 2
            compare(f"{op} f32 {n}" + (f" {n}" if op in BINARY else ""), lambda: numpy_seconds(op, n), 4 * n * operands)
    for name, dtype in (("f32", np.float32), ("f64", np.float64)):
        for m, k, n in PRODUCTS:
            compare(f"matmul {name} {m}x{k} {k}x{n}", lambda: numpy_product(dtype, m, k, n))
    if "--json" in sys.argv:
        print(json.dumps({"numpy": np.__version__, "memory_bytes_per_s": memory, "rows": rows}, indent=1))
    else:
        print(f"behind numpy {np.__version__}: {sum(r['ratio'] < 1 for r in rows)} of {len(rows)}; worst ratio {min(r['ratio'] for r in rows):.2f}")


if __name__ == "__main__":
    main()
