"""Calls that a module must not make: its time, randomness, memory and I/O come from outside."""

import re

import tree

LIBRARY = ("lib/", "hadamard/", "transport/", "collectives/")
CORE = ("lib/", "hadamard/", "transport/packet_io.h", "transport/wire/", "transport/ubt/",
        "transport/sim/", "transport/fault/", "collectives/")
SANS_IO = ("transport/ubt/", "transport/wire/", "collectives/tar/")

# Rule: (pattern over code without comments and literals, where it is banned, what to do instead).
RULES = {
    "clock": (r"(steady|high_resolution)_clock::now|\bclock_gettime\b|\b__?rdtscp?\b",
              CORE, "take `now` as an argument"),
    "wall_clock": (r"\bsystem_clock\b|\bCLOCK_REALTIME\b|\bgettimeofday\b"
                   r"|\btime\s*\(\s*(nullptr|NULL|0)\s*\)",
                   LIBRARY + ("examples/",), "time runs by the steady clock, which nobody sets"),
    "random": (r"\bs?rand\s*\(|\brandom_device\b|\bmt19937\w*|\b[dl]rand48\b|\brandombytes_\w+"
               r"|\bgetrandom\b",
               CORE, "take a seeded stream"),
    "environment": (r"\b(secure_)?getenv\b|\bsetenv\b|\benviron\b", LIBRARY,
                    "add an option to the config table"),
    "dpdk": (r"\brte_\w+", CORE + ("transport/udp/", "transport/control/"),
             "keep DPDK in transport/dpdk"),
    "memory": (r"\bnew\b(?!\s*\()|\b(malloc|calloc|realloc)\s*\(", SANS_IO,
               "take memory at creation, through containers"),
    "threads": (r"\bstd::(mutex|recursive_mutex|shared_mutex|thread|jthread|condition_variable\w*"
                r"|lock_guard|unique_lock|scoped_lock)\b|\b(sleep_for|sleep_until|usleep"
                r"|nanosleep)\b",
                SANS_IO, "the state machines belong to whoever calls them"),
    "sockets": (r"(?<![\w.>:])(::)?(socket|bind|connect|sendto|sendmsg|sendmmsg|recvfrom|recvmsg"
                r"|recvmmsg|ppoll|epoll_wait)\s*\(",
                SANS_IO + ("transport/sim/", "transport/fault/", "lib/", "hadamard/"),
                "datagrams go through PacketPort"),
    "stdout": (r"\bstd::cout\b|(?<![\w])printf\s*\(|\bputs\s*\(|\bputchar\s*\(", LIBRARY,
               "the library writes nothing to stdout"),
    "throw": (r"\bthrow\b", LIBRARY + ("examples/",), "return a Status"),
    "exit": (r"(?<![\w.>])(std::|::)?(_?exit|quick_exit)\s*\(", LIBRARY,
             "a library must not end the process"),
}

# (rule, file): why it may. Each entry is one decision; keep the list short.
EXCEPTIONS = {
    ("environment", "lib/environment.cc"): "the one reader of OPTIREDUCE_* variables",
    ("clock", "lib/log.cc"): "rate limit of control-plane lines",
    ("clock", "collectives/driver.cc"): "the one place that reads the clock for the engine",
    ("random", "transport/wire/keys.cc"): "a job key must not be guessable",
}

_FLAGS = re.compile(r"\bDEFINE_(bool|u?int32|u?int64|double|string)\s*\(")


def check_calls(files):
    for path, text in files.items():
        if not path.endswith(tree.CPP):
            continue
        code = tree.code_only(text)
        for rule, (pattern, folders, advice) in RULES.items():
            if not path.startswith(folders) or (rule, path) in EXCEPTIONS:
                continue
            for match in re.finditer(pattern, code):
                yield (f"{path}:{tree.line_of(code, match.start())}: "
                       f"banned call ({rule}) `{match.group(0).strip()}`: {advice}")


def check_exceptions(files):
    """An exception that is no longer used must go."""
    for rule, path in EXCEPTIONS:
        pattern = RULES[rule][0]
        if path not in files or not re.search(pattern, tree.code_only(files[path])):
            yield f"test/tidy/calls.py:1: exception ({rule}, {path}) is not needed any more"


def check_flags(files):
    for path, text in files.items():
        if path.endswith(tree.CPP) and not path.startswith(("examples/", "test/")):
            code = tree.code_only(text)
            for match in _FLAGS.finditer(code):
                yield (f"{path}:{tree.line_of(code, match.start())}: "
                       "a flag outside examples: a library owns no process flags")
