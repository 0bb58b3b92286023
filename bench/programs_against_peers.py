#!/usr/bin/env python3
"""Whole programs against numpy, numexpr, jax and torch on the CPU, in turns, in one run.

    cargo build --release --examples && cargo build --release && target/release/steer calibrate
    python3 -m venv .venv && .venv/bin/pip install numpy numexpr jax torch
    .venv/bin/python bench/programs_against_peers.py [--only chain image] [--json] [--release target/release]

Each round runs our example and then every peer that can be imported; the ratio is the peer's best round over ours:
above 1, ours is ahead. A round's time is a median, run by run, ours of the second half of its runs. Every result is
checked against the f64 reference of our example. The peers get ready what they could make outside of the program (the
element-wise program's x, for one, which ours makes each time). jax is compiled, the others are written as people
write them; numexpr finds its names among a function's locals, hence its defaults. `of memory` compares the bytes a chain must move with the best of the machine's measured read, copy and
streaming bandwidths in main memory.
"""
import argparse, importlib, json, math, os, statistics, subprocess, sys, time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import numpy as np

F = np.float32
IMAGE, PATHS, STEPS, POINTS = (4, 2160, 3840), 250_000, 256, 10_000_000
MU, SIGMA, DT = 0.05, 0.2, 1 / 252
DRIFT, SPREAD, DISCOUNT = (MU - SIGMA**2 / 2) * DT, SIGMA * math.sqrt(DT), math.exp(-MU * STEPS * DT)


def optional(name):
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):
        return None


ne, jax, torch = optional("numexpr"), optional("jax"), optional("torch")
PEERS = {"numpy": np, "numexpr": ne, "jax": jax, "torch": torch}


def images():
    index = np.arange(math.prod(IMAGE), dtype=np.uint32)
    return (index * np.uint32(1664525) + np.uint32(1013904223)).astype(F).reshape(IMAGE) / F(2**32)


def image_numpy():
    x = images()

    def run():
        mu = x.mean(axis=(1, 2), keepdims=True)
        s = np.sqrt(((x - mu) ** 2).mean(axis=(1, 2), keepdims=True) + 1e-6)
        out = np.maximum((x - mu) / s * 1.0123 - 0.02, 0) ** 1.8
        return float(((out - x) ** 2).mean())

    return run


def image_numexpr():
    def run(x=images(), eps=F(1e-6), gain=F(1.0123), lift=F(0.02), zero=F(0), power=F(1.8)):
        mu = x.mean(axis=(1, 2), keepdims=True)
        s = np.sqrt(ne.evaluate("(x - mu) * (x - mu)").mean(axis=(1, 2), keepdims=True) + eps)
        out = ne.evaluate("(x - mu) / s * gain - lift")
        out = ne.evaluate("where(out > zero, out, zero) ** power")
        return float(ne.evaluate("(out - x) * (out - x)").mean())

    return run


def image_jax():
    jnp, x = jax.numpy, jax.numpy.asarray(images())

    @jax.jit
    def program(x):
        mu = x.mean(axis=(1, 2), keepdims=True)
        s = jnp.sqrt(((x - mu) ** 2).mean(axis=(1, 2), keepdims=True) + 1e-6)
        out = jnp.maximum((x - mu) / s * 1.0123 - 0.02, 0) ** 1.8
        return ((out - x) ** 2).mean()

    return lambda: float(program(x))


def image_torch():
    x = torch.from_numpy(images())

    def run():
        mu = x.mean(dim=(1, 2), keepdim=True)
        s = torch.sqrt(((x - mu) ** 2).mean(dim=(1, 2), keepdim=True) + 1e-6)
        out = ((x - mu) / s * 1.0123 - 0.02).clamp(min=0) ** 1.8
        return ((out - x) ** 2).mean().item()

    return run


def monte_carlo_numpy():
    rng = np.random.default_rng(1)

    def run():
        s = np.full(PATHS, 100, F)
        for _ in range(STEPS):
            s = s * np.exp(DRIFT + SPREAD * rng.standard_normal(PATHS, dtype=F))
        return float(np.maximum(s - 100, 0).mean()) * DISCOUNT

    return run


def monte_carlo_numexpr():
    rng = np.random.default_rng(1)

    def run(drift=F(DRIFT), spread=F(SPREAD)):
        s = np.full(PATHS, 100, F)
        for _ in range(STEPS):
            z = rng.standard_normal(PATHS, dtype=F)
            s = ne.evaluate("s * exp(drift + spread * z)")
        return float(np.maximum(s - 100, 0).mean()) * DISCOUNT

    return run


def monte_carlo_jax():
    jnp = jax.numpy

    @jax.jit
    def program(key):
        def step(t, s):
            z = jax.random.normal(jax.random.fold_in(key, t), (PATHS,), jnp.float32)
            return s * jnp.exp(DRIFT + SPREAD * z)

        s = jax.lax.fori_loop(0, STEPS, step, jnp.full(PATHS, 100, jnp.float32))
        return jnp.maximum(s - 100, 0).mean() * DISCOUNT

    keys = iter(range(1 << 30))
    return lambda: float(program(jax.random.key(next(keys))))


def monte_carlo_torch():
    def run():
        s = torch.full((PATHS,), 100.0)
        for _ in range(STEPS):
            s = s * torch.exp(DRIFT + SPREAD * torch.randn(PATHS))
        return (s - 100).clamp(min=0).mean().item() * DISCOUNT

    return run


def points():
    return np.linspace(0, 4 * np.pi, POINTS, dtype=F)


def elementwise_with(lib, x):
    y0 = lib.sin(x) * lib.exp(-x / 10)
    y1 = y0 * lib.cos(x / 4) + 0.25 * y0**2
    return (lib.tanh(y1) + 0.1 * y1).mean()


def elementwise_numpy():
    x = points()
    return lambda: float(elementwise_with(np, x))


def elementwise_numexpr():
    def run(x=points(), ten=F(10), four=F(4), quarter=F(0.25), tenth=F(0.1)):
        y0 = ne.evaluate("sin(x) * exp(-x / ten)")
        y1 = ne.evaluate("y0 * cos(x / four) + quarter * y0 * y0")
        return float(ne.evaluate("tanh(y1) + tenth * y1").mean())

    return run


def elementwise_jax():
    x, program = jax.numpy.asarray(points()), jax.jit(lambda x: elementwise_with(jax.numpy, x))
    return lambda: float(program(x))


def elementwise_torch():
    x = torch.from_numpy(points())
    return lambda: elementwise_with(torch, x).item()


def ramp(n):
    return np.arange(n, dtype=np.int32).astype(F) / F(n)


def chain_numpy(n):
    x = ramp(n)
    return lambda: -np.maximum((np.abs((np.sqrt(x * 1.5 + 0.5) - 0.25) * x) + 1) / 2, 0.125)


def chain_numexpr(n):
    x, a, b, c, one, two, least = ramp(n), F(1.5), F(0.5), F(0.25), F(1), F(2), F(0.125)
    names = {"x": x, "a": a, "b": b, "c": c, "one": one, "two": two, "least": least}
    # Its maximum() answers in f64; what stands twice in an expression it computes once.
    half = "(abs((sqrt(x * a + b) - c) * x) + one) / two"
    expression = f"-where({half} > least, {half}, least)"
    return lambda: ne.evaluate(expression, names)


def chain_jax(n):
    jnp, x = jax.numpy, jax.numpy.asarray(ramp(n))
    program = jax.jit(lambda x: -jnp.maximum((jnp.abs((jnp.sqrt(x * 1.5 + 0.5) - 0.25) * x) + 1) / 2, 0.125))
    return lambda: program(x).block_until_ready()


def chain_torch(n):
    x = torch.from_numpy(ramp(n))
    return lambda: -((((x * 1.5 + 0.5).sqrt() - 0.25) * x).abs() + 1).div(2).clamp(min=0.125)


def programs():
    """Name, our example's command line, how to make a peer's program, how near its result must be, bytes to move."""
    here = globals()
    image = dict(zip(["--batch", "--height", "--width"], IMAGE))
    yield "image", ["image_4k", image], lambda p: here[f"image_{p}"](), 1e-2, None
    yield "monte_carlo", ["monte_carlo", {"--paths": PATHS, "--steps": STEPS}], lambda p: here[f"monte_carlo_{p}"](), 3e-2, None
    yield "elementwise", ["elementwise", {"--n": POINTS}], lambda p: here[f"elementwise_{p}"](), 1e-2, None
    for n in (100, 10_000, 1_000_000, 100_000_000):
        moved = 8 * n if n >= 1_000_000 else None
        yield f"chain_{n:.0e}".replace("e+0", "e"), ["chain", {"--n": n}], lambda p, n=n: here[f"chain_{p}"](n), 1e-4, moved


def ours(release, example, flags):
    words = [os.path.join(release, "examples", example), "--json", *(f"{k}={v}" for k, v in flags.items())]
    out = subprocess.run(words, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{' '.join(words)}: {out.stderr.strip()}")
    return json.loads(out.stdout)


def seconds(run):
    run()
    took = []
    while len(took) < 3 or (sum(took) < 0.5 and len(took) < 20_000):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


def bandwidth(release):
    out = subprocess.run([os.path.join(release, "steer"), "devices", "--json"], capture_output=True, text=True)
    levels = json.loads(out.stdout)["devices"][0]["rates"]["levels"] if out.returncode == 0 else []
    return max((rate for kind in ("read", "copy", "stream") for rate in levels[-1][kind]), default=None) if levels else None


def compare(release, rounds, memory, program):
    name, (example, flags), make, near, moved = program
    best, runs = {}, {}
    for turn in range(rounds):
        row = ours(release, example, flags)
        best["steersman"] = min(best.get("steersman", math.inf), row["steady_s"])
        for peer, lib in PEERS.items():
            if lib is None:
                continue
            if turn == 0:
                runs[peer] = make(peer)
                result = float(np.asarray(runs[peer]()).mean(dtype=np.float64))
                if not abs(result / row["reference"] - 1) < near:
                    sys.exit(f"{name} by {peer} is {result}, not {row['reference']}: not the same program")
            best[peer] = min(best.get(peer, math.inf), seconds(runs[peer]))
    share = moved / best["steersman"] / memory if moved and memory else None
    ratios = {peer: best[peer] / best["steersman"] for peer in PEERS if peer in best}
    return {"program": name, "seconds": best, "ratios": ratios, "of_memory": share}


def line(row):
    cells = [f"{row['ratios'][p]:.2f}" if p in row["ratios"] else "–" for p in PEERS]
    share = f"{row['of_memory']:.2f}" if row["of_memory"] else ""
    return f"| {row['program']:<11} | {row['seconds']['steersman'] * 1e3:10.4f} | " + " | ".join(f"{c:>7}" for c in [*cells, share]) + " |"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="*", default=[""], help="programs whose name starts with one of these")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--release", default="target/release", help="where cargo put steer and examples/")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    chosen = [p for p in programs() if p[0].startswith(tuple(given.only))]
    versions = {peer: getattr(lib, "__version__", None) for peer, lib in PEERS.items()}
    memory, rows = bandwidth(given.release), []
    if not given.json:
        print(", ".join(f"{p} {v}" if v else f"{p} is not installed" for p, v in versions.items()))
        print("| program     |    ours, ms | " + " | ".join(f"{p:>7}" for p in PEERS) + " | of memory |")
        print("|---|" + "--:|" * (len(PEERS) + 2))
    for program in chosen:
        rows.append(compare(given.release, given.rounds, memory, program))
        if not given.json:
            print(line(rows[-1]), flush=True)
    if given.json:
        print(json.dumps({"versions": versions, "memory_bytes_per_s": memory, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
