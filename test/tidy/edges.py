"""Which module may include which: a module sees only lower levels, never a sibling."""

import re

# Module: the modules whose headers its files may include. "x!" means only x's public headers.
ALLOWED = {
    "base": set(),
    "packet_io": {"base"},
    "hadamard": {"base"},
    "wire": {"base"},
    "ubt": {"base", "wire"},
    "udp": {"base", "packet_io"},
    "dpdk": {"base", "packet_io"},
    "sim": {"base", "packet_io"},
    "fault": {"base", "packet_io"},
    "shm": {"base"},
    "control": {"base", "wire"},
    "ports": {"base", "packet_io", "udp", "dpdk", "fault"},
    "collectives": {"base", "packet_io", "hadamard", "wire", "ubt", "shm", "ports", "control"},
    "trace_events": set(),
    "sim_harness": {"base", "packet_io", "wire", "ubt", "sim", "fault", "control", "collectives",
                    "trace_events"},
    "bench": {"base!", "collectives!", "trace_events"},
    "examples": {"base!", "collectives!"},
    "torch_ext": {"base!", "collectives!"},
}

# Folder or file prefix: module. The longest match wins.
MODULE_OF = {
    "lib/": "base",
    "hadamard/": "hadamard",
    "transport/packet_io.h": "packet_io",
    "transport/ports.": "ports",
    "transport/wire/": "wire",
    "transport/ubt/": "ubt",
    "transport/udp/": "udp",
    "transport/dpdk/": "dpdk",
    "transport/sim/": "sim",
    "transport/fault/": "fault",
    "transport/shm/": "shm",
    "transport/control/": "control",
    "collectives/": "collectives",
    "examples/": "examples",
    "examples/common/trace_events.h": "trace_events",
    "examples/sim/": "sim_harness",
    "examples/bench/": "bench",
    "torch_ext/": "torch_ext",
    "test/": "test",
}

PUBLIC_FOLDERS = ("lib/include/", "collectives/include/")

# External headers that not everybody may see: (pattern, who may).
EXTERNAL = [
    (r"gflags/", {"bench", "sim_harness", "examples", "test"}),
    (r"boost/", {"control", "test"}),
    (r"(nettle|isa-l)/", {"wire", "test"}),
    (r"sodium", {"wire", "control", "test"}),
    (r"rte_", {"dpdk"}),
    (r"(torch|c10|ATen)/", {"torch_ext"}),
    (r"(gtest|gmock)/", {"test"}),
    (r"(sys/socket|sys/epoll|poll|netinet/\S+|arpa/inet|linux/\S+|ifaddrs|net/if)\.h",
     {"udp", "dpdk", "control", "ports", "bench", "test"}),
]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def module_of(path):
    matches = [prefix for prefix in MODULE_OF if path.startswith(prefix)]
    return MODULE_OF[max(matches, key=len)] if matches else None


def _resolve(files, name):
    """The path of a quoted include, or None."""
    for folder in ("",) + PUBLIC_FOLDERS:
        if folder + name in files:
            return folder + name
    return None


def _is_public(path):
    return path.startswith(PUBLIC_FOLDERS)


def _edge_fault(path, target):
    """Why `path` may not include `target`, or None."""
    here, there = module_of(path), module_of(target)
    if here in (None, "test"):
        return None
    if _is_public(path) and not _is_public(target):
        return f"a public header may include public headers only, not {target}"
    if there == "test":
        return f"{here} includes {target}: test is seen by nothing"
    if here == there or there in ALLOWED[here]:
        return None
    if _is_public(target) and f"{there}!" in ALLOWED[here]:
        return None
    return f"forbidden include edge {here} -> {there} ({target})"


def _external_fault(path, name):
    for pattern, modules in EXTERNAL:
        if re.match(pattern, name) and module_of(path) not in modules:
            return f"<{name}> belongs to {', '.join(sorted(modules))}"
    return None


def includes(text):
    """(line, quoted name or None, angle name or None) of each include."""
    for match in _INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def check_edges(files):
    for path, text in files.items():
        if not path.endswith((".h", ".cc")):
            continue
        if module_of(path) is None:
            yield f"{path}:1: belongs to no module"
            continue
        for line, quoted, angle in includes(text):
            fault = None
            if quoted:
                target = _resolve(files, quoted)
                if target:
                    fault = _edge_fault(path, target)
                elif module_of(path) != "test":
                    fault = f'"{quoted}" is no header of ours (paths start at the top folder)'
            else:
                fault = _external_fault(path, angle)
            if fault:
                yield f"{path}:{line}: {fault}"


def find_cycle(graph):
    """One cycle of {node: set of nodes} as a list, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for target in sorted(graph.get(node, ())):
            cycle = visit(target)
            if cycle:
                return cycle
        path.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


def check_cycles(files):
    cycle = find_cycle({module: {name.rstrip("!") for name in seen}
                        for module, seen in ALLOWED.items()})
    if cycle:
        yield "test/tidy/edges.py:1: the table itself has a cycle: " + " -> ".join(cycle)
    graph = {}
    for path, text in files.items():
        if path.endswith((".h", ".cc")):
            targets = (_resolve(files, quoted) for _, quoted, _ in includes(text) if quoted)
            graph[path] = {target for target in targets if target}
    cycle = find_cycle(graph)
    if cycle:
        yield f"{cycle[0]}:1: include cycle: " + " -> ".join(cycle)


_CMAKE_MODULE = re.compile(r"optireduce_module\((\w+)([^)]*)\)")


def check_cmake(files):
    """What CMake links must be what the table allows."""
    for path, text in files.items():
        if not path.endswith("CMakeLists.txt"):
            continue
        for match in _CMAKE_MODULE.finditer(text):
            name, rest = match.group(1), match.group(2)
            depends = re.search(r"\bDEPENDS\s+([\w\s]+?)(?=\s+(?:LINK|GLOB|EXCLUDE)\b|\s*$)", rest)
            linked = set(depends.group(1).split()) if depends else set()
            for extra in sorted(linked - ALLOWED.get(name, set())):
                yield (f"{path}:{text.count(chr(10), 0, match.start()) + 1}: "
                       f"forbidden link {name} -> {extra}")
