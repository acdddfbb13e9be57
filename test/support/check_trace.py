"""check_trace.py FILE RANKS NAME...: prints what is wrong with a trace of JSON events.

It must load, have spans of each rank, the spans of one lane must nest, and each NAME must start the
name of an event of some rank; a NAME "A>B" wants every B inside of an A.
"""

import json
import sys

ROUNDING_US = 0.0011  # times have three decimals


def lanes(events):
    spans = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault((event["pid"], event["tid"]), []).append(event)
    return spans


def nesting_faults(spans, parents):
    """Also notes in `parents` the names around each span."""
    open_spans = []
    for event in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while open_spans and open_spans[-1][1] <= begin + ROUNDING_US:
            open_spans.pop()
        if open_spans and end > open_spans[-1][1] + ROUNDING_US:
            yield f"{event['name']} at {begin} ends after {open_spans[-1][0]}, in which it began"
        parents.append((event["name"], [name for name, _ in open_spans]))
        open_spans.append((event["name"], end))


def faults(path, ranks, names):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    parents = []
    by_lane = lanes(events)
    for spans in by_lane.values():
        yield from nesting_faults(spans, parents)
    if {pid for pid, _ in by_lane} != set(range(ranks)):
        yield f"spans of ranks {sorted({pid for pid, _ in by_lane})}, not of 0 to {ranks - 1}"
    for name in names:
        outer, _, inner = name.rpartition(">")
        found = [around for event, around in parents if event.startswith(inner)]
        if not found and not any(event["name"].startswith(inner) for event in events):
            yield f"no event {inner}"
        if outer and not all(any(n.startswith(outer) for n in around) for around in found):
            yield f"{inner} outside of {outer}"
    if "events_left_out" not in trace["otherData"]:
        yield "does not say how much was left out"


def main(arguments):
    found = list(faults(arguments[0], int(arguments[1]), arguments[2:]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
