"""Checks of the source tree. Usage: tidy.py ROOT [CHECK...]; prints path:line: fault, exits 1."""

import sys

import calls
import documents
import edges
import layout
import messages
import tree

CHECKS = {
    "include_edges": edges.check_edges,
    "include_cycles": edges.check_cycles,
    "cmake_edges": edges.check_cmake,
    "banned_calls": calls.check_calls,
    "exceptions_used": calls.check_exceptions,
    "flags": calls.check_flags,
    "sizes": layout.check_sizes,
    "functions": layout.check_functions,
    "header_guards": layout.check_guards,
    "include_order": layout.check_include_order,
    "words": layout.check_words,
    "messages": messages.check_messages,
    "field_cases": documents.check_cases,
    "links": documents.check_links,
}


def main(arguments):
    if not arguments or any(name not in CHECKS for name in arguments[1:]):
        print(__doc__, "Checks:", " ".join(CHECKS), file=sys.stderr)
        return 2
    files = tree.load(arguments[0])
    if not any(path.endswith(tree.CPP) for path in files):
        print(f"no sources below {arguments[0]}", file=sys.stderr)
        return 2
    faults = 0
    for name in arguments[1:] or CHECKS:
        for fault in CHECKS[name](files):
            print(f"{fault} [{name}]")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
