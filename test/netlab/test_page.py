"""Unit tests of report.py and page.py: what is saved is read again, and what the page says of it.

    python3 -m unittest test_page
"""

import pathlib
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from harness.tally import Tally

import measure
import page
import report

ENVIRONMENT = {"command": "c", "version": "v", "processors": 2, "congestion": "reno", "line": "a line", "date": "d",
               "kernel": "k", "load": "0.1", "short": ""}
SCENARIOS = {1: ("s01", "Statements", {}), 2: ("s02", "Others", {"odd": "Since it is odd."})}


def results():
    found = measure.Results(Tally())
    found.scenario, found.case = 1, "SELECT 1"
    found.add("exchange, calls", 100, 100.5, allowed=1, goal="1 % or 5 us each", per=1000)
    found.add("network", 500, 510, allowed=5, goal="3 % of round trips x round trip", per=100)
    found.add("rtt", float("nan"), 5)
    found.at_least("connect_time", 640, 3551, required=True)
    found.scenario = 2
    found.add("odd", 1, 3, allowed=1, goal="1 %", note="very")
    return found


class Saved(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = pathlib.Path(self.directory.name) / "accuracy.md"
        report.save(self.path.with_suffix(".tsv"), results(), ENVIRONMENT)
        self.rows, self.environment = report.load(self.path.with_suffix(".tsv"))

    def test_what_is_saved_is_read_again(self):
        self.assertEqual([row.result for row in self.rows], ["ok", "miss", "shown", "ok", "miss"])
        self.assertEqual(self.rows[0].allowed, 1)
        self.assertEqual(self.rows[4].note, "very")
        self.assertEqual(self.environment["line"], "a line")

    def test_page(self):
        page.write(self.path, self.rows, self.environment, SCENARIOS)
        text = self.path.read_text()
        self.assertIn("| Exchanges, by system calls | 1 % or 5 us each | 0.50 us (0.50 %) | 0.50 us (0.50 %) | 1 of 1 |",
                      text)
        self.assertIn("Of all goals, 2 of 4 are met", text)
        self.assertIn("*odd* (1 of 1): Since it is odd.", text)
        self.assertNotIn("From a short run", text)
        self.assertIn("<circle", self.path.with_suffix(".svg").read_text())

    def test_page_of_a_short_run_says_so(self):
        page.write(self.path, self.rows, {**self.environment, "short": "yes"}, SCENARIOS)
        self.assertIn("> From a short run", self.path.read_text())


class Lines(unittest.TestCase):
    def test_bound_is_no_truth(self):
        bound = next(result for result in results() if result.quantity == "connect_time")
        self.assertEqual(report.line(bound), " 1 SELECT 1: connect_time: 3551 ms, at least 640")

    def test_predictions_are_told_apart(self):
        def prediction(goal):
            return report.Row(12, "", "throughput", 1, 1, "/s", goal, 1, 1, "", "ok")
        self.assertEqual(page.goal_of(prediction("10 %, or within bounds")).title, "Predictions: a shorter path")
        self.assertEqual(page.goal_of(prediction("3 %")).title, "Predictions: a longer path, batches")


if __name__ == "__main__":
    unittest.main()
