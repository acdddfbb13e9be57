"""check_json.py FILE PERCENTILE...: is this what docs/benchmark.md promises? Prints what is not.

Everything that can be recomputed is: the percentiles and bandwidths from the samples.
"""

import json
import math
import sys

TOP = {"schema": str, "version": str, "complete": bool, "hosts": list, "world_size": int,
       "transport": str, "config": dict, "results": list}
ROW = {"bytes": int, "count": int, "type": str, "op": str, "in_place": bool, "min_us": float,
       "p50_us": float, "p90_us": float, "p99_us": float, "max_us": float, "algbw_GBps": float,
       "busbw_GBps": float, "wrong": int, "max_rel_err": float, "late_entries": int,
       "lost_entries": int, "loss_pct": float, "cpu_s_per_GB": float, "samples_us": list}


def has_type(value, wanted):
    if wanted is bool or isinstance(value, bool):
        return isinstance(value, bool) and wanted is bool
    return isinstance(value, (int, float) if wanted is float else wanted)


def shape_faults(thing, wanted, where, extra=()):
    for name, kind in wanted.items():
        if name not in thing:
            yield f"{where}: {name} is missing"
        elif not has_type(thing[name], kind):
            yield f"{where}: {name} is {thing[name]!r}"
    for name in thing.keys() - wanted.keys() - set(extra):
        yield f"{where}: {name} is not documented"


def nearest_rank(samples, percent):
    return sorted(samples)[max(1, math.ceil(percent * len(samples) / 100 - 1e-9)) - 1]


def row_faults(row, world_size, percents, where):
    samples = row["samples_us"]
    if not samples:
        yield f"{where}: no samples"
        return
    for percent in percents:
        name = f"p{percent:g}_us"
        if row.get(name) != nearest_rank(samples, percent):
            yield f"{where}: {name} is {row.get(name)}, not {nearest_rank(samples, percent)}"
    if row["min_us"] != min(samples) or row["max_us"] != max(samples):
        yield f"{where}: min or max is none of the samples"
    algbw = row["bytes"] / row["p50_us"] / 1e3
    busbw = algbw * 2 * (world_size - 1) / world_size
    for name, value in (("algbw_GBps", algbw), ("busbw_GBps", busbw)):
        if not math.isclose(row[name], value, rel_tol=1e-9):
            yield f"{where}: {name} is {row[name]}, not {value}"


def faults(result, percents):
    yield from shape_faults(result, TOP, "top")
    if result["schema"] != "optireduce-bench/1":
        yield f"schema is {result['schema']}"
    if len(result["hosts"]) != result["world_size"]:
        yield "hosts and world_size disagree"
    extra = [f"p{percent:g}_us" for percent in percents]
    for number, row in enumerate(result["results"]):
        where = f"row {number}"
        yield from shape_faults(row, ROW, where, extra)
        yield from row_faults(row, result["world_size"], percents, where)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(faults(json.load(file), [float(text) for text in sys.argv[2:]]))
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
