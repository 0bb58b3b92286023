"""Whether calibrations from nothing choose alike: calibrates several times, judges the choices of each by times of all candidates.

Two choices are compared by the ratio of their times within one judge's run, which took them in turns; of several judges the
median counts. (The least times of several judges would compare minutes in which the machine ran at different speeds.)

    cargo build --release && python3 bench/random_shapes.py 230 > shapes.txt
    python3 bench/two_calibrations.py shapes.txt [--times 3]

Prints, for each pair, how many choices differ, and how many of those by over 2 and 10% as measured.
"""

import argparse
import json
import os
import subprocess
import tempfile
from itertools import combinations
from statistics import median

STEER = "target/release/steer"


def steer(home, *words):
    env = {**os.environ, **{f"XDG_{kind}_HOME": home for kind in ("CACHE", "DATA", "CONFIG")}}
    done = subprocess.run([STEER, *words, "--json"], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"steer {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("shapes")
    args.add_argument("--times", type=int, default=2)
    args = args.parse_args()
    with tempfile.TemporaryDirectory() as top:
        homes = [os.path.join(top, str(i)) for i in range(args.times)]
        for home in homes:
            steer(home, "calibrate")
        chosen, times = [], {}
        for home in homes:
            report = steer(home, "regret", args.shapes)
            print(f"mean regret {report['mean_regret']:.2%}, 99th percentile {report['p99_regret']:.0%}, "
                  f"MAPE {report['mape']:.0%}, inside {report['coverage90']:.0%}")
            chosen.append({row["workload"]: row["chosen"] for row in report["rows"]})
            for row in report["rows"]:
                timed = {t["candidate"]: t["seconds"] for t in row["timed"]}
                times.setdefault(row["workload"], []).append(timed)
    for (i, a), (j, b) in combinations(enumerate(chosen, 1), 2):
        both = [(w, a[w], b[w]) for w in a.keys() & b.keys()]
        apart = []
        for w, x, y in both:
            ratios = [t[x] / t[y] for t in times[w] if x in t and y in t]
            if x != y and ratios:
                ratio = median(ratios)
                apart.append((max(ratio, 1 / ratio) - 1, w, x, y))
        beyond = [sum(loss > band for loss, *_ in apart) for band in (0.02, 0.1)]
        print(f"calibrations {i} and {j}: {len(apart)} of {len(both)} differ, {beyond[0]} by over 2%, {beyond[1]} by over 10%")
        for loss, w, x, y in sorted(apart, reverse=True)[:5]:
            print(f"  {loss:6.1%}  {w}: {x} or {y}")


if __name__ == "__main__":
    main()
