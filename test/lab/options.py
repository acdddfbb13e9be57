#!/usr/bin/env python3
"""Compares two settings of our own options on this machine's loopback, with optireduce-bench.

  options.py "spin=50us" "spin=0"
  options.py "" "security.tag=off security.check=off" --ranks 8 --sizes 25M --repeats 7

Both run in turn for every cell, again and again; the table shows medians, and the ratios of the
first to the second. Needs neither root nor peers.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import compare
import machine
import table

BENCH = machine.REPOSITORY / "build/lab/bin/optireduce-bench"


def measure(settings, ranks, size, seconds, extra):
    """The benchmark's row, out of place, in the words of table.py."""
    command = [BENCH, "--np", str(ranks), "-b", str(size), "-e", str(size), "-n", "1000",
               "-w", "20", "--time_cap", f"{seconds}s", "--json", "-", *extra]
    for setting in settings.split():
        command += ["--set", setting]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60 + 20 * seconds, check=False)
    if done.returncode not in (0, 3):  # 3: elements were wrong, which the table says too
        sys.exit(f"options: {' '.join(map(str, command))}: {done.stderr.strip()}")
    row = next(row for row in json.loads(done.stdout)["results"] if not row["in_place"])
    gigabytes = row["bytes"] * len(row["samples_us"]) / 1e9
    return {"ranks": ranks, "bytes": row["bytes"], "wrong": row["wrong"] or 0,
            "cpu_s": row["cpu_s_per_GB"] * gigabytes, "samples_us": row["samples_us"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="OPTION=VALUE, several with spaces between; '': the defaults")
    parser.add_argument("second")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--sizes", type=compare.bytes_of, nargs="+",
                        default=[compare.bytes_of(size) for size in ("4K", "64K", "1M", "25M")])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of iterations in a cell")
    parser.add_argument("--bench", default="", help="more flags for optireduce-bench, such as "
                        "'--mode bounded --deadline 50ms'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    return parser.parse_args()


def main():
    options = parse()
    subprocess.run([machine.REPOSITORY / "scripts/build.sh", "lab", str(options.jobs)], check=True)
    names = [settings or "defaults" for settings in (options.first, options.second)]
    if names[0] == names[1]:
        sys.exit("options: the two settings are the same")
    runs = [machine.describe()]
    rows = []
    start = time.monotonic()
    for repeat in range(options.repeats):
        for ranks in options.ranks:
            for size in options.sizes:
                turns = list(zip(names, (options.first, options.second)))
                for name, settings in turns if repeat % 2 == 0 else turns[::-1]:
                    row = measure(settings, ranks, size, options.seconds, options.bench.split())
                    rows.append(table.measured({"repeat": repeat, "condition": "loopback",
                                                "contender": name, **row}))
                print(f"[repeat {repeat + 1}/{options.repeats}, {time.monotonic() - start:.0f} s] "
                      f"{ranks} ranks, {table.size_text(size)}", file=sys.stderr, flush=True)
    print("\n".join(list(table.about(runs)) + [""] + list(table.markdown(rows))))
    return 3 if any(table.is_wrong(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
