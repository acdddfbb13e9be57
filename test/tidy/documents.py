"""Do the documents cite what there is: tests, files, other documents?"""

import posixpath
import re

import tree

CASES = "docs/field-cases.md"
# | A1 | what the user must see | how that is shown |
_ROW = re.compile(r"^\| *([A-Z])(\d+) *\|([^|\n]*)\|([^|\n]*)\|$", re.MULTILINE)
_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
_CITED = re.compile(r"`([^`\n]+)`")
_TEST_NAME = re.compile(r"[A-Z]\w+\.[A-Z]\w+")
_FILE_NAME = re.compile(r"[\w./-]+/[\w.-]+\.(?:cc|h|py|sh|md)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def check_cases(files):
    """Each test and file that the page cites exists; each row is there once and says how."""
    page = files.get(CASES)
    if page is None:
        return
    tests = {".".join(match.groups())
             for path, text in files.items()
             if path.startswith("test/") and path.endswith(".cc")
             for match in _TEST.finditer(text)}
    for match in _CITED.finditer(page):
        name = match.group(1)
        line = tree.line_of(page, match.start())
        if _TEST_NAME.fullmatch(name) and name not in tests:
            yield f"{CASES}:{line}: there is no test {name}"
        if _FILE_NAME.fullmatch(name) and name not in files:
            yield f"{CASES}:{line}: there is no file {name}"
    last = {}
    for match in _ROW.finditer(page):
        letter, number = match.group(1), int(match.group(2))
        line = tree.line_of(page, match.start())
        if number != last.get(letter, 0) + 1:
            yield f"{CASES}:{line}: {letter}{number} is not the next row of {letter}"
        last[letter] = number
        if not match.group(4).strip():
            yield f"{CASES}:{line}: {letter}{number} says neither how it is shown nor why not"
    if not last:
        yield f"{CASES}:1: no row"


def check_links(files):
    """Links between documents lead somewhere."""
    known = set(files)
    for path in files:
        while path := posixpath.dirname(path):
            known.add(path)
    for path, text in files.items():
        if not path.endswith(".md"):
            continue
        for match in _LINK.finditer(text):
            target = match.group(1).split("#")[0]
            if not target or re.match(r"\w+:", target):
                continue
            whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if whole not in known:
                yield (f"{path}:{tree.line_of(text, match.start())}: "
                       f"the link {target} leads nowhere")
