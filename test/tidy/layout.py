"""Sizes, guards, include order and words."""

import re

import edges
import tree

FILE_LINES_MAX = 599
FUNCTION_LINES_MAX = 69
COLUMNS_MAX = 100


def check_sizes(files):
    for path, text in files.items():
        if not path.endswith(tree.CPP + (".py", ".sh", ".cmake")):
            continue
        lines = text.split("\n")
        if len(lines) - 1 > FILE_LINES_MAX:
            yield f"{path}:1: {len(lines) - 1} lines, at most {FILE_LINES_MAX}"
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}"
            if line != line.rstrip() or "\t" in line:
                yield f"{path}:{number}: a tab or trailing space"
        if text and not text.endswith("\n"):
            yield f"{path}:{len(lines)}: no newline at the end"


_SCOPE = re.compile(r"^\s*(template\s*<[^{]*>\s*)?(inline\s+|export\s+|typedef\s+)*"
                    r"(namespace|class|struct|union|enum|extern\s*\"\")\b")


def functions(code):
    """(first line, last line) of each outermost function body, by braces; approximate."""
    code = tree.without_preprocessor(code)
    scopes, inside, head_start, open_line = [], False, 0, 0
    for match in re.finditer(r"[{};]", code):
        char, at = match.group(0), match.start()
        if char == ";":
            if not inside:
                head_start = at + 1
            continue
        if char == "{":
            head = code[head_start:at]
            kind = "nested" if inside or "init" in scopes else _kind(head)
            if kind == "function":
                inside = True
                first = head_start + len(head) - len(head.lstrip())
                open_line = tree.line_of(code, first)
            scopes.append(kind)
            if kind == "scope":
                head_start = at + 1
            continue
        if not scopes:
            return  # unbalanced, by a macro: nothing sure can be said
        kind = scopes.pop()
        if kind == "function":
            inside = False
            yield open_line, tree.line_of(code, at)
        if kind in ("function", "scope"):
            head_start = at + 1


def _kind(head):
    """What a brace opens outside of functions, told by the text before it."""
    head = re.sub(r"\b(public|private|protected)\s*:(?!:)", "", head)
    head = re.sub(r"\boperator\s*(\(\s*\)|[^\s\w(]+)", "operator_", head)
    if "(" not in head:
        return "scope" if _SCOPE.match(head) else "init"
    if _SCOPE.match(head) and not re.search(r"\)\s*(const|noexcept|override|final|\s)*$", head):
        return "scope"
    if re.search(r"=\s*[^=()]*$", head) or re.search(r"=[^=]*\(.*$", head.split("(")[0] + "("):
        return "init"
    # A brace right after a name in a constructor's list opens a member's initialiser.
    if re.search(r"\)\s*(noexcept\s*)?:(?!:).*[\w>]\s*$", head, re.DOTALL):
        return "init"
    return "function"


def check_functions(files):
    for path, text in files.items():
        if path.endswith(tree.CPP):
            for first, last in functions(tree.code_only(text)):
                if last - first + 1 > FUNCTION_LINES_MAX:
                    yield (f"{path}:{first}: a function of {last - first + 1} lines, "
                           f"at most {FUNCTION_LINES_MAX}")


def guard_of(path):
    for folder in edges.PUBLIC_FOLDERS:
        if path.startswith(folder):
            path = path[len(folder):]
    name = re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
    return name if name.startswith("OPTIREDUCE_") else "OPTIREDUCE_" + name


def check_guards(files):
    for path, text in files.items():
        if not path.endswith(".h"):
            continue
        guard = guard_of(path)
        wanted = f"#ifndef {guard}\n#define {guard}\n"
        if wanted not in text or not text.rstrip().endswith(f"#endif  // {guard}"):
            yield f"{path}:1: the header guard should be {guard}"
        if not text.startswith("//"):
            yield f"{path}:1: a header opens with what it is, its thread rule and its limits"


def check_include_order(files):
    """Each block of includes is sorted (clang-format would do the same)."""
    for path, text in files.items():
        if not path.endswith(tree.CPP):
            continue
        block = []
        for number, line in enumerate(text.split("\n") + [""], 1):
            match = re.match(r'#include ([<"])([^>"]+)[>"]', line)
            if match:
                block.append(match.group(2))
                if len(block) > 1 and block[-2] > block[-1]:
                    yield f"{path}:{number}: <{block[-1]}> should come before <{block[-2]}>"
            else:
                block = []


# Spelt in halves so that this file passes its own check.
_WORDS = [
    (r"\bTO" r"DO\b|\bFIX" r"ME\b|\bX" r"XX\b", "unfinished work belongs in the tracker"),
    (r"(?i)\bnot (yet )?imple" r"mented\b|\bplace" r"holder\b", "finish it or leave it out"),
    (r"(?<![\w.])/(work|root|home|Users)/", "a path of one machine"),
    (r"(?i)\bchu" r"nk(s|ed|ing)?\b", "say cell, shard or block"),
]
# A bare name that says nothing; Asio's own function of that name is let through.
_BARE_NAME = re.compile(r"(?<![:.>\w])buf" r"fer\b(?!\s*\()")


def check_words(files):
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, advice in _WORDS:
                match = re.search(pattern, line)
                if match:
                    yield f"{path}:{number}: `{match.group(0)}`: {advice}"
        if path.endswith(tree.CPP):
            code = tree.code_only(text)
            for match in _BARE_NAME.finditer(code):
                yield (f"{path}:{tree.line_of(code, match.start())}: "
                       f"`{match.group(0)}` alone is no name: say what it holds")
