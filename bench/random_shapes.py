"""Random workloads of all op classes of the engine, log-uniform in size: what `steer regret` is judged by beyond its public shapes.

    python3 bench/random_shapes.py 230 --seed 901 > shapes.txt
    target/release/steer regret shapes.txt
"""

import argparse
import math
import random

UNARY = """neg abs sign sqrt rsqrt recip exp expm1 ln log1p log2 sin cos tan asin acos atan sinh cosh tanh sigmoid relu gelu silu
erf floor ceil round trunc""".split()
BINARY = "add sub mul div min max pow atan2".split()
REDUCE = "sum mean prod min max argmin argmax norm var std".split()
# Products count twice: they have most candidates.
CLASSES = "unary unary binary binary reduce reduce matmul matmul matmul transpose row column".split()
# Multiplications of one product at most: 2 seconds of one slow core.
LARGEST = 2e9


def one(draw):
    """One workload in its text form."""

    def size(most):
        return round(math.exp(draw.uniform(0, math.log(most))))

    kind, dtype = draw.choice(CLASSES), draw.choice(["f32", "f32", "f64"])
    if kind == "unary":
        return f"{draw.choice(UNARY)} {dtype} {size(1e7)}"
    if kind == "binary":
        n = size(1e7)
        return f"{draw.choice(BINARY)} {dtype} {n} {n}"
    if kind == "reduce":
        axis = draw.choice(["", " axis=0", " axis=1"])
        return f"{draw.choice(REDUCE)} {dtype} {size(4096)}x{size(4096)}{axis}"
    if kind == "transpose":
        return f"transpose {dtype} {size(4200)}x{size(4200)}"
    if kind == "matmul":
        m, k, n = (size(2500) for _ in range(3))
        return f"matmul {dtype} {m}x{k} {k}x{n}" if m * k * n <= LARGEST else one(draw)
    rows, cols = size(2500), size(2500)
    other = f"{cols}" if kind == "row" else f"{rows}x1"
    return f"{draw.choice(BINARY[:6])} {dtype} {rows}x{cols} {other}"


if __name__ == "__main__":
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("count", type=int)
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    draw = random.Random(args.seed)
    print("\n".join(one(draw) for _ in range(args.count)))
