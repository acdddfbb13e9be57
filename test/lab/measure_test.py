"""Tests of measure.cc with two ranks on this host: what is timed is checked, and faults show.

Usage: measure_test.py FOLDER_OF_PROGRAMS
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Measure(unittest.TestCase):
    def measure(self, program, elements):
        with tempfile.TemporaryDirectory() as folder:
            port = str(free_port())
            ranks = [subprocess.Popen(
                [PROGRAMS / program, f"--bytes={4 * elements}", "--iterations=6", "--time_cap=60",
                 f"--meeting={folder}/meeting", f"--result={folder}/result",
                 '--fields="repeat": 3'],
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                for rank in range(2)]
            try:
                self.assertEqual([rank.wait(timeout=60) for rank in ranks], [0, 0])
            finally:
                for rank in ranks:
                    rank.kill()
            return json.loads(pathlib.Path(folder, "result").read_text(encoding="utf-8"))

    def test_ours_is_timed_and_right(self):
        row = self.measure("lab_ours", 10_007)
        self.assertEqual((row["repeat"], row["ranks"], row["bytes"]), (3, 2, 40_028))
        self.assertEqual(row["wrong"], 0)
        self.assertEqual(len(row["samples_us"]), 6)
        self.assertGreater(min(row["samples_us"]), 0)
        self.assertGreater(row["cpu_s"], 0)

    def test_a_sum_that_is_none_is_found_wrong(self):
        # 20 iterations of warm-up and 6 more; no contribution p + 1 or p + 2 is the sum 2 p + 3.
        row = self.measure("lab_wrong", 1000)
        self.assertEqual(row["wrong"], 26 * 2 * 1000)

    def test_without_ranks_it_says_what_is_missing(self):
        done = subprocess.run([PROGRAMS / "lab_ours", "--meeting=x", "--result=x"], text=True,
                              capture_output=True, timeout=60, check=False,
                              env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 2)
        self.assertIn("RANK or OMPI_COMM_WORLD_RANK must be set", done.stderr)


if __name__ == "__main__":
    unittest.main()
