"""What a figure depends on beside the program: the machine, its software and what else it does."""

import os
import pathlib
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def first_line(*command):
    """Of what the command prints; empty where it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True,
                              cwd=REPOSITORY)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.strip().splitlines() or [""])[0]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        names = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    return names.get("PRETTY_NAME", "").strip('"')


def commit():
    found = first_line("git", "rev-parse", "--short", "HEAD")
    changed = first_line("git", "status", "--porcelain", "--untracked-files=no")
    return found + (" with changes" if changed else "")


def package(name):
    return first_line("dpkg-query", "-W", "-f=${Version}", name)


def describe():
    """{name: value}; settings of ours are those of the environment, the rest being defaults."""
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items())
                if name.startswith("OPTIREDUCE_")]
    return {
        "processor": f"{processor()}, {len(os.sched_getaffinity(0))} CPUs",
        "system": f"{release()}, Linux {os.uname().release}",
        "compiler": first_line("c++", "--version"),
        "commit": commit(),
        "settings": " ".join(settings) or "defaults",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }
