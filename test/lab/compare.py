#!/usr/bin/env python3
"""Compares our all-reduce with that of gloo and Open MPI, in network namespaces of this machine.

Every cell (condition, ranks, size) runs each contender in turn, every repeat all cells again. What
is printed in the end are medians and ratios; the raw samples stay in a file, from which table.py
makes the same table. README.md beside this file says what the figures mean.

Needs root, the packages iproute2, nftables and ethtool, and for the peers libgloo-dev,
libopenmpi-dev and openmpi-bin; a peer that is not there is named and left out.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import table

NET = str(machine.REPOSITORY / "test/lab/net.sh")
BUILD = machine.REPOSITORY / "build/lab"
DEFAULT_CONTENDERS = ["ours/exact", "gloo/ring_chunked", "openmpi/default"]
PACKAGES = {"gloo": "libgloo-dev", "openmpi": "libopenmpi-dev openmpi-bin"}
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
START_LIMIT_S = 60  # of a cell, beside what its iterations may take

# For both: how Open MPI 4 names things, and Open MPI 5.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_plm_rsh_agent": f"{NET} agent",
    "PRTE_MCA_plm_ssh_agent": f"{NET} agent",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
    "OMPI_MCA_oob_tcp_if_include": "eth0",
    "PRTE_MCA_prte_if_include": "eth0",
    # There are more ranks than cores: who spins would keep the core from who has the data.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def bytes_of(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def address(rank):
    return f"10.88.0.{rank + 1}"


def commands(contender, ranks, arguments, store):
    """[(command, environment)]: one process for each rank, or one that starts them."""
    program, mode = contender.split("/", 1)
    command = [str(BUILD / "test/bin" / f"lab_{program}"), f"--mode={mode}", *arguments]
    if program == "openmpi":
        hosts = ",".join(f"{address(rank)}:1" for rank in range(ranks))
        mpirun = [MPIRUN, "-np", str(ranks), "--host", hosts]
        return [([NET, "exec", "0", *mpirun, *command], MPI_ENVIRONMENT)]
    return [([NET, "exec", str(rank), *command],
             {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
              "MASTER_ADDR": address(0), "MASTER_PORT": "29500", "LAB_STORE": store})
            for rank in range(ranks)]


def run_all(started, limit_s, log):
    """Runs the commands together. What went wrong, or None; none of them is left."""
    processes = [subprocess.Popen(command, env={**os.environ, **environment}, stdout=log,
                                  stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
                 for command, environment in started]
    end = time.monotonic() + limit_s
    fault = None
    while fault is None and any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            fault = "failed"
        elif time.monotonic() > end:
            fault = "did not end"
        time.sleep(0.02)
    if any(process.poll() for process in processes):
        fault = fault or "failed"
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return fault


def make_net(ranks, condition):
    subprocess.run([NET, "up", str(ranks), condition], check=True, timeout=120)


class Comparison:
    def __init__(self, options):
        self.options = options
        self.raw_path = options.out / "raw.jsonl"
        self.log = open(options.out / "log", "w", encoding="utf-8")
        self.start = time.monotonic()
        self.done = 0
        self.all = (options.repeats * len(options.conditions) * len(options.ranks)
                    * len(options.sizes) * len(options.contenders))

    def add(self, item):
        with open(self.raw_path, "a", encoding="utf-8") as file:
            file.write(json.dumps(item) + "\n")

    def run(self):
        for repeat in range(self.options.repeats):
            for condition in self.options.conditions:
                for ranks in self.options.ranks:
                    make_net(ranks, condition)
                    for size in self.options.sizes:
                        self.run_cell(repeat, condition, ranks, size)

    def run_cell(self, repeat, condition, ranks, size):
        """Every contender once; who is first changes from repeat to repeat."""
        contenders = self.options.contenders
        first = repeat % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            row = self.measure({"repeat": repeat, "condition": condition, "contender": contender},
                               ranks, size)
            self.done += 1
            text = table.result_text({repeat: table.measured(row)})
            print(f"[{self.done}/{self.all}, {time.monotonic() - self.start:.0f} s] {condition}, "
                  f"{ranks} ranks, {table.size_text(size)}, {contender}: {text}", flush=True)

    def measure(self, fields, ranks, size):
        seconds = self.options.seconds
        print(f"== {fields}, {ranks} ranks, {size} bytes", file=self.log, flush=True)
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="optireduce-lab.") as folder:
            result = pathlib.Path(folder, "result")
            arguments = [f"--bytes={size}", f"--time_cap={seconds}",
                         f"--iterations_min={self.options.iterations_min}",
                         f"--meeting={folder}/meeting", f"--result={result}"]
            store = pathlib.Path(folder, "store")
            store.mkdir()
            fault = run_all(commands(fields["contender"], ranks, arguments, str(store)),
                            START_LIMIT_S + 4 * seconds, self.log)
            if fault is None:
                row = {**fields, **json.loads(result.read_text(encoding="utf-8"))}
            else:
                row = {**fields, "ranks": ranks, "bytes": size, "failed": fault}
                make_net(ranks, fields["condition"])  # ends what may be left in the old one
        self.add(row)
        return row


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--sizes", type=bytes_of, nargs="+", default=["4K", "1M", "25M"],
                        help="bytes, with K, M, G as powers of 1024 (default: 4K 1M 25M)")
    parser.add_argument("--conditions", nargs="+", default=["clean", "mtu", "loss1"],
                        help="of net.sh: clean, mtu, loss1 (1 per cent), gigabit")
    parser.add_argument("--contenders", nargs="+", default=DEFAULT_CONTENDERS,
                        help="ours/exact, ours/bounded, gloo/ring_chunked, gloo/halving_doubling, "
                        "openmpi/default; the first is compared with the others")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of iterations in a cell")
    parser.add_argument("--iterations-min", type=int, default=5, help="even if they take longer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "results",
                        help="a folder; what an earlier run left there is replaced")
    options = parser.parse_args()
    options.sizes = [bytes_of(size) if isinstance(size, str) else size for size in options.sizes]
    return options


def leave_out_missing(contenders):
    there = []
    for contender in contenders:
        program = contender.split("/", 1)[0]
        if (BUILD / "test/bin" / f"lab_{program}").exists() and (program != "openmpi" or MPIRUN):
            there.append(contender)
        else:
            advice = f" (apt-get install {PACKAGES[program]})" if program in PACKAGES else ""
            print(f"compare: {contender} is left out: it is not there{advice}", file=sys.stderr)
    return there


def main():
    options = parse()
    if os.geteuid() != 0:
        print("compare: needs root, for network namespaces", file=sys.stderr)
        return 2
    subprocess.run([machine.REPOSITORY / "scripts/build.sh", "lab", str(options.jobs)], check=True)
    options.contenders = leave_out_missing(options.contenders)
    if not options.contenders:
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    comparison = Comparison(options)
    comparison.raw_path.unlink(missing_ok=True)
    comparison.add({"run": {
        **machine.describe(),
        "gloo": machine.package("libgloo-dev") or "none",
        "Open MPI": machine.package("openmpi-bin") or machine.first_line(MPIRUN or "", "--version"),
        "TCP": os.environ.get("LAB_TCP", "cubic"),
    }})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        comparison.run()
    finally:
        subprocess.run([NET, "down"], check=False, timeout=120)
    with open(comparison.raw_path, encoding="utf-8") as file:
        runs, rows = table.load(file)
    text = "\n".join(list(table.about(runs)) + [""] + list(table.markdown(rows))) + "\n"
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print("\n" + text)
    print(f"compare: raw samples in {comparison.raw_path}, this table beside it", flush=True)
    ours_failed = any("failed" in row and row["contender"].startswith("ours/") for row in rows)
    return 3 if ours_failed or any(table.is_wrong(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
