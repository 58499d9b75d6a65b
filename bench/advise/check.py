#!/usr/bin/env python3
"""Holds the advice of `forebay advise` against measurements.

Draws workloads by a seed, asks for advice on each, runs each under every candidate by `forebay bench`, and says whether
the layout advised was the cheapest of those that keep the limits, or within a tenth of it. What a run costs is told in
`measure.seconds`. The constants of the planner were fitted to another seed than the usual one.
"""

import argparse
import json
import subprocess
import sys

import measure
import workloads

TUNING_SEED = 999
MACHINE = {"cores": 2, "device_bytes_per_second": 1e9, "device_reads_per_second": 1e5}
NEAR = 1.1
LAYOUTS = [
    "wb-tree",
    "wb-tree:ordered",
    "no-merge",
    "tiering:t=10",
    "geometric:r=2",
    "geometric:p=2",
    "jungle:c=3",
    "leveling:t=10",
]
APART = ["wb-tree", "wb-tree:ordered", "tiering:t=10", "leveling:t=10"]


def candidates(workload):
    """What is measured: the layouts that the workload can have, some with values apart."""
    fits = [name for name in LAYOUTS if not workload.ranges or name != "wb-tree"]
    plain = [{"layout": name} for name in fits]
    if workload.value_bytes < workloads.APART_BYTES:
        return plain
    apart = [name for name in fits if name in APART]
    return plain + [{"layout": name, "values_apart": workloads.APART_BYTES} for name in apart]


def key_of(one):
    """What tells candidates and advice apart."""
    return one["layout"], bool(one.get("values_apart"))


def name_of(key):
    """The same for a person."""
    return key[0] + (" apart" if key[1] else "")


def advise(forebay, workload):
    """The advice, the best first, of what is measured."""
    words = [forebay, "advise", *workload.advise_words(), "--all", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    measured = {key_of(candidate) for candidate in candidates(workload)}
    advice = json.loads(done.stdout)["advice"]
    return [one for one in advice if key_of(one) in measured]


def held(forebay, workload, folder, show_parts):
    """Measures one workload, and prints how the advice did. Whether it was right."""
    advice = advise(forebay, workload)
    prices = {key_of(one): one["prices"] for one in advice}
    costs = {}
    for candidate in candidates(workload):
        phases = measure.run(forebay, workload, candidate, folder)
        key = key_of(candidate)
        space = max(phase["disk_bytes"] for phase in phases) / workload.live_bytes
        costs[key] = measure.seconds(phases, MACHINE), space
        if show_parts:
            print_parts(key, phases, prices[key], workload)
    within = {
        key: cost for key, (cost, space) in costs.items() if not workload.space or space <= workload.space
    }
    first = key_of(advice[0])
    if not within or advice[0]["breaks"]:
        is_right = not within
        print(f"{workload.name:>4} {workload.told()}\n     none keeps the limit: {is_right}")
        return is_right
    winner = min(within, key=within.get)
    ratio = within[first] / within[winner] if first in within else float("inf")
    rank = sorted(within.values())
    second = rank[1] / rank[0] if len(rank) > 1 else float("inf")
    print(
        f"{workload.name:>4} {workload.told()}\n"
        f"     advised {name_of(first):<24} winner {name_of(winner):<24} ratio {ratio:.2f}"
        f"  (second {second:.2f}, worst {rank[-1] / rank[0]:.2f})",
        flush=True,
    )
    return ratio <= NEAR


def print_parts(key, phases, price, workload):
    """What was measured beside what was predicted."""
    processor, device = measure.parts(phases, MACHINE)
    space = max(phase["disk_bytes"] for phase in phases) / workload.live_bytes
    scale = workloads.SECONDS
    print(
        f"       {name_of(key):<24}"
        f" processor {processor:6.2f} {price['processor_share'] * scale:6.2f}"
        f"   device {device:6.2f} {price['device_share'] * scale:6.2f}"
        f"   space {space:5.2f} {price['space_amplification_peak']:5.2f}"
        f"   lists {phases[-1]['lists_per_path'] or 0:5.1f} {price['lists_per_path']:5.1f}",
        flush=True,
    )


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--forebay", default="target/release/forebay", help="the command")
    parser.add_argument("--workloads", type=int, default=20, metavar="N", help="how many are drawn")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="of records; 1 is about 100 MB")
    parser.add_argument("--seed", type=int, default=7, help=f"of the draws; {TUNING_SEED} is that of the fit")
    parser.add_argument("--dir", default=".", help="where databases are made, and removed")
    parser.add_argument("--parts", action="store_true", help="print what was measured and predicted of each")
    args = parser.parse_args()
    right = 0
    for number in range(args.first, args.first + args.workloads):
        workload = workloads.draw(args.seed, number, args.scale)
        right += held(args.forebay, workload, args.dir, args.parts)
    print(f"right, or within {NEAR - 1:.0%}: {right} of {args.workloads}")
    return 0 if right >= 0.9 * args.workloads else 1


if __name__ == "__main__":
    sys.exit(main())
