"""The source tree as the checks see it: paths, texts, and C++ text without comments and strings."""

import os
import re

SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__", ".venv"}
CPP = (".h", ".cc")
TEXT = CPP + (".py", ".sh", ".cmake", ".txt", ".md", ".json", ".in", ".map", ".yml")


def load(root):
    """All text files below root: {path from root, with slashes: text}."""
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not (name.endswith(TEXT) or name == "Makefile") or os.path.islink(path):
                continue
            with open(path, encoding="utf-8") as file:
                files[os.path.relpath(path, root).replace(os.sep, "/")] = file.read()
    return files


_TOKEN = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<delimiter>[^()\s]{0,16})\(.*?\)(?P=delimiter)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'
    """,
    re.DOTALL | re.VERBOSE,
)


def _blank(match):
    text = match.group(0)
    kept = '""' if text.startswith(('"', "R")) else "0" if text.startswith("'") else " "
    return kept + "\n" * text.count("\n")


def code_only(text):
    """C++ text with comments gone and literals emptied; line numbers stay."""
    lines = _TOKEN.sub(_blank, text).split("\n")
    return "\n".join(lines)


def without_preprocessor(code):
    """Code with preprocessor lines (and their continuations) emptied; line numbers stay."""
    out, continued = [], False
    for line in code.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.rstrip().endswith("\\")
        out.append("" if directive else line)
    return "\n".join(out)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
