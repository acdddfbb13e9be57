"""Tests of the comparison's table, from raw lines as compare.py writes them."""

import io
import json
import unittest

import table


def line(repeat, contender, samples, **more):
    row = {"repeat": repeat, "condition": "clean", "contender": contender, "ranks": 2,
           "bytes": 1048576, "wrong": 0, "cpu_s": 0.01 * len(samples), "samples_us": samples}
    return json.dumps({**row, **more})


RAW = [
    json.dumps({"run": {"processor": "one, 2 CPUs", "commit": "abc1234"}}),
    line(0, "ours/exact", [1000.0] * 99 + [9000.0]),
    line(0, "gloo/ring_chunked", [2000.0, 2000.0, 4000.0]),
    line(0, "openmpi/default", [], failed="did not end"),
    line(1, "gloo/ring_chunked", [1000.0, 1000.0, 4000.0]),
    line(1, "openmpi/default", [4000.0]),
    line(1, "ours/exact", [2000.0] * 98 + [8000.0, 9000.0]),
]


class Table(unittest.TestCase):
    def rows(self, raw=None):
        return table.load(raw or RAW)[1]

    def cell(self, raw=None):
        (cell,) = table.cells(self.rows(raw)).values()
        return cell

    def test_percentiles_are_samples_by_nearest_rank(self):
        samples = [float(value) for value in range(200, 0, -1)]
        self.assertEqual(table.percentile(samples, 50), 100)
        self.assertEqual(table.percentile(samples, 99), 198)
        self.assertEqual(table.percentile([3.0, 1.0, 2.0], 99), 3)
        self.assertEqual(table.percentile([1.0, 2.0], 50), 1)
        self.assertEqual(table.percentile([7.0], 50), 7)

    def test_cpu_is_for_each_gigabyte_reduced(self):
        self.assertAlmostEqual(self.rows()[0]["cpu_s_per_GB"], 0.01 / 1048576e-9)

    def test_medians_are_over_repeats(self):
        found = table.medians(self.cell()["ours/exact"])
        self.assertEqual(found["p50_us"], 1500)
        self.assertEqual(found["p99_us"], 4500)

    def test_ratios_are_taken_within_a_repeat(self):
        cell = self.cell()
        ours, gloo, mpi = (cell[name] for name in
                           ("ours/exact", "gloo/ring_chunked", "openmpi/default"))
        self.assertEqual(table.ratios(ours, gloo, "p50_us"), [0.5, 2.0])
        self.assertEqual(table.ratios(ours, gloo, "p99_us"), [0.25, 2.0])
        self.assertEqual(table.ratios(ours, mpi, "p50_us"), [0.5])  # the other one did not end

    def test_the_table(self):
        heads, rule, row = table.markdown(self.rows())
        self.assertEqual(heads.count("|"), rule.count("|"))
        self.assertEqual(heads.count("|"), row.count("|"))
        self.assertTrue(row.startswith(
            "| clean | 2 | 1 MiB | 1.5 / 4.5 | 1.5 / 4 | 1.25 [0.50-2.00] | 1.12 [0.25-2.00] "
            "| 4 / 4 | 0.50 | "), row)
        self.assertTrue(row.endswith("| 9.54 / 9.54 / 9.54 | 1-100 |"), row)

    def test_what_failed_is_said(self):
        raw = [line(0, "ours/exact", [1.0]), line(0, "openmpi/default", [], failed="did not end")]
        row = list(table.markdown(self.rows(raw)))[2]
        self.assertIn("| did not end | - | - |", row)

    def test_wrong_results_are_loud(self):
        rows = self.rows([line(0, "ours/exact", [1.0], wrong=3)])
        self.assertTrue(table.is_wrong(rows[0]))
        self.assertIn("WRONG: 3 elements", list(table.markdown(rows))[2])

    def test_what_bounded_mode_left_out_is_not_wrong(self):
        rows = self.rows([line(0, "ours/bounded", [1.0], wrong=3)])
        self.assertFalse(table.is_wrong(rows[0]))
        self.assertIn("(3 elements incomplete)", list(table.markdown(rows))[2])

    def test_csv_has_a_line_for_each_cell_and_repeat(self):
        text = io.StringIO()
        table.write_csv(self.rows(), text)
        lines = text.getvalue().splitlines()
        self.assertEqual(len(lines), 7)
        self.assertTrue(lines[1].startswith("0,clean,ours/exact,2,1048576,100,1000.0,1000.0,"))
        self.assertTrue(lines[3].endswith(",did not end"))

    def test_sizes_and_durations(self):
        self.assertEqual([table.size_text(size) for size in (4096, 26214400, 1000)],
                         ["4 KiB", "25 MiB", "1000 B"])
        self.assertEqual([table.ms(us) for us in (64.2, 1500, 99_900, 1_234_567)],
                         ["0.0642", "1.5", "99.9", "1235"])


if __name__ == "__main__":
    unittest.main()
