#!/usr/bin/python3
"""Tests of what the experiments compute with, and of how the page is written; needs no server."""

import pathlib
import sys
import tempfile
import unittest
import xml.dom.minidom

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
sys.dont_write_bytecode = True

import charts
import formulas
import page


def prediction(predicted, measured, low=float("nan"), high=float("nan")):
    return formulas.Prediction("a load", predicted, measured, "/s", low=low, high=high)


class Formulas(unittest.TestCase):
    def test_published(self):
        """digoal's own figures come out: one-way latencies of 5.16 and 13.6 us, then 64 clients."""
        database = formulas.database_time(36938, 1, 2 * 0.00516)
        self.assertAlmostEqual(database, 0.01675, places=5)
        self.assertAlmostEqual(formulas.throughput_by_hand(1, database, 2 * 0.0136), 22753, delta=5)
        database = formulas.database_time(1575989, 64, 2 * 0.0118)
        self.assertAlmostEqual(formulas.throughput_by_hand(64, database, 2 * 0.0618), 455192, delta=100)

    def test_net_delay(self):
        """What lies between the first and the last look that saw the session, and did not see it."""
        self.assertEqual(formulas.net_delay([1, 2, 3, 4], 4), 0)
        self.assertEqual(formulas.net_delay([10, 20], 100), 8)
        self.assertEqual(formulas.net_delay([], 100), 0)

    def test_quality(self):
        of = [prediction(100 + error, 100, 90, 110 if error < 9 else 95) for error in range(10)]
        quality = formulas.quality(of)
        self.assertEqual((quality.count, round(quality.median, 3), round(quality.ninth, 3)), (10, 0.045, 0.08))
        self.assertEqual(quality.within, 0.9)
        self.assertEqual(quality.said().within, "90 %")
        # one without bounds counts for the errors only
        self.assertEqual(formulas.quality([*of, prediction(50, 100)]).within, 0.9)
        self.assertAlmostEqual(prediction(50, 100).error, -0.5)


class Page(unittest.TestCase):
    def test_figures(self):
        self.assertEqual([page.figure(value) for value in (0.0123456, 12, 12.3456, 1234.5, 1575989.0)],
                         ["0.0123", "12", "12.3", "1,230", "1,580,000"])
        self.assertEqual([page.percent(value) for value in (-0.5, 0.0123, 0.0999, 0)],
                         ["−50 %", "+1.2 %", "+10 %", "+0.0 %"])

    def test_table(self):
        self.assertEqual(page.table(("load", "TPS"), [("one", "1,000"), ("two", "**−2**")]),
                         "| load | TPS |\n|---|---:|\n| one | 1,000 |\n| two | **−2** |\n")

    def test_page(self):
        """The sections in order, each picture written and linked."""
        of = [prediction(90, 100, 80, 120), prediction(300, 100)]
        curves = charts.curves({1: {"measured": [(1, 10), (2, 5)], "hand": [(2, 6)], "pgnetlat": [(2, 5.5)]}})
        stacks = charts.stacks([("a <b>", {"CPU": 0.5, "Net/Delay*": 0.4}, {"network": 1}, {"exchange": 1})])
        sections = {1: page.Section("One", "Text of one.\n", "First answer.", of, {"curves": curves}),
                    3: page.Section("Three", "Text of three.\n", "Second answer.", [], {"cases": stacks})}
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "page.md"
            page.write(path, sections, {"version": "PostgreSQL 15", "processors": 4, "line": "TUN devices"})
            text = path.read_text()
            for file in ("page.svg", "page_curves.svg", "page_cases.svg"):
                self.assertIn(f"]({file})", text)
                xml.dom.minidom.parse(f"{directory}/{file}")
        places = [text.index(part) for part in ("- First answer.\n- Second answer.", "## 1. One", "Text of one.", "## 3. ")]
        self.assertEqual(places, sorted(places))
        self.assertNotIn("  \n", text)


class Charts(unittest.TestCase):
    def test_scale(self):
        place = charts.scale(0.5, 2, 0, 100)
        self.assertEqual([round(place(value), 6) for value in (0.1, 0.5, 1, 2, 9)], [0, 0, 50, 100, 100])

    def test_ticks(self):
        self.assertEqual(charts.ticks([95, 20000]), [100, 1000, 10000])


if __name__ == "__main__":
    unittest.main()
