"""Does docs/operations/troubleshooting.md speak of messages that the code has?"""

import re

PAGE = "docs/operations/troubleshooting.md"
FOLDERS = ("lib/", "transport/", "collectives/", "examples/bench/")
# A third-level heading is a piece of one message, in backquotes.
HEADING = re.compile(r"^### (.*)$", re.MULTILINE)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*"((?:[^"\\\n]|\\.)*)")*')
PIECE = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals(text):
    """String literals, adjacent ones joined as the compiler does."""
    return ["".join(PIECE.findall(match.group(0))) for match in LITERAL.finditer(text)]


def check_messages(files):
    if PAGE not in files:
        return
    known = "\n".join(
        literal
        for path, text in files.items()
        if path.endswith(".cc") and path.startswith(FOLDERS)
        for literal in literals(text)
    )
    headings = list(HEADING.finditer(files[PAGE]))
    if not headings:
        yield f"{PAGE}:1: no heading of a message"
    for heading in headings:
        line = files[PAGE].count("\n", 0, heading.start()) + 1
        key = heading.group(1)
        if not (len(key) > 2 and key[0] == key[-1] == "`"):
            yield f"{PAGE}:{line}: a heading is a message in backquotes"
        elif key[1:-1] not in known:
            yield f"{PAGE}:{line}: no message of the code has {key}"
