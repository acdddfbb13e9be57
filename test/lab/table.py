#!/usr/bin/env python3
"""The table of a comparison, from the raw lines that compare.py wrote.

Percentiles are by nearest rank over the iterations of one cell (the p99 of fewer than 100 is the
maximum). What is shown of several repeats is their median; a ratio is taken within each repeat,
whose contenders ran minutes apart at most, and shown as median [smallest-largest].
"""

import argparse
import csv
import json
import math
import statistics
import sys

MEASURES = ("p50_us", "p99_us", "cpu_s_per_GB")


def percentile(samples, percent):
    """Nearest rank: the smallest sample that `percent` per cent of all do not exceed."""
    ordered = sorted(samples)
    rank = math.ceil(percent * len(ordered) / 100 - 1e-9)
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def measured(row):
    """Adds to a raw row what follows from its samples; a row that failed stays as it is."""
    samples = row.get("samples_us")
    if not samples:
        return row
    gigabytes = row["bytes"] * len(samples) / 1e9
    return {**row, "p50_us": percentile(samples, 50), "p99_us": percentile(samples, 99),
            "iterations": len(samples), "cpu_s_per_GB": row["cpu_s"] / gigabytes}


def load(lines):
    """(what was said about the run, rows)"""
    objects = [json.loads(line) for line in lines if line.strip()]
    runs = [item["run"] for item in objects if "run" in item]
    return runs, [measured(item) for item in objects if "run" not in item]


def cells(rows):
    """{(condition, ranks, bytes): {contender: {repeat: row}}}, in the order of the rows"""
    table = {}
    for row in rows:
        cell = table.setdefault((row["condition"], row["ranks"], row["bytes"]), {})
        cell.setdefault(row["contender"], {})[row["repeat"]] = row
    return table


def medians(repeats):
    """{measure: median}, or None where no repeat has a result"""
    good = [row for row in repeats.values() if "p50_us" in row]
    if not good:
        return None
    return {measure: statistics.median(row[measure] for row in good) for measure in MEASURES}


def ratios(mine, theirs, measure):
    """mine / theirs of every repeat that has both, sorted"""
    return sorted(mine[repeat][measure] / theirs[repeat][measure] for repeat in mine
                  if repeat in theirs and measure in mine[repeat] and measure in theirs[repeat])


def is_wrong(row):
    """Elements that bounded mode left out are not wrong: it says so itself."""
    return row.get("wrong", 0) > 0 and not row["contender"].endswith("/bounded")


def size_text(count):
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def ms(microseconds):
    value = microseconds / 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def result_text(repeats):
    found = medians(repeats)
    if found is None:
        return next(iter(repeats.values())).get("failed", "-")
    wrong = sum(row.get("wrong", 0) for row in repeats.values())
    note = ""
    if any(is_wrong(row) for row in repeats.values()):
        note = f" **WRONG: {wrong} elements**"
    elif wrong:
        note = f" ({wrong} elements incomplete)"
    return f"{ms(found['p50_us'])} / {ms(found['p99_us'])}{note}"


def ratio_text(values):
    if not values:
        return "-"
    middle = f"{statistics.median(values):.2f}"
    return middle if len(values) == 1 else f"{middle} [{values[0]:.2f}-{values[-1]:.2f}]"


def markdown(rows):
    """The table as lines. The first contender is compared with each of the others."""
    contenders = list(dict.fromkeys(row["contender"] for row in rows))
    first, others = contenders[0], contenders[1:]
    heads = ["condition", "ranks", "size", f"{first} p50 / p99 ms"]
    for other in others:
        heads += [f"{other} p50 / p99 ms", "first / this, p50", "p99"]
    heads += ["CPU s/GB, in this order", "iterations"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for (condition, ranks, size), cell in cells(rows).items():
        mine = cell.get(first, {})
        texts = [condition, str(ranks), size_text(size), result_text(mine) if mine else "-"]
        for other in others:
            theirs = cell.get(other, {})
            texts += [result_text(theirs) if theirs else "-",
                      ratio_text(ratios(mine, theirs, "p50_us")),
                      ratio_text(ratios(mine, theirs, "p99_us"))]
        found = [medians(cell.get(name, {})) for name in contenders]
        texts.append(" / ".join("-" if one is None else f"{one['cpu_s_per_GB']:.3g}"
                                for one in found))
        counts = [row["iterations"] for repeats in cell.values() for row in repeats.values()
                  if "iterations" in row]
        texts.append(f"{min(counts)}-{max(counts)}" if counts else "-")
        yield "| " + " | ".join(texts) + " |"


def about(runs):
    """What was measured where, one line for each thing."""
    for run in runs:
        for name, value in run.items():
            yield f"- {name}: {value}"


def write_csv(rows, file):
    names = ["repeat", "condition", "contender", "ranks", "bytes", "iterations", "p50_us", "p99_us",
             "cpu_s_per_GB", "wrong", "failed"]
    writer = csv.DictWriter(file, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("raw", help="raw.jsonl of compare.py")
    parser.add_argument("--csv", action="store_true", help="a line for every cell and repeat")
    options = parser.parse_args()
    with open(options.raw, encoding="utf-8") as file:
        runs, rows = load(file)
    if not rows:
        print(f"{options.raw}: no results", file=sys.stderr)
        return 1
    if options.csv:
        write_csv(rows, sys.stdout)
    else:
        print("\n".join(list(about(runs)) + [""] + list(markdown(rows))))
    return 3 if any(is_wrong(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
