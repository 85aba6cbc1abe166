#!/usr/bin/python3
"""Tests of what the benches compute with; needs no server."""

import collections
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "test" / "lib")]
sys.dont_write_bytecode = True

import callgrind
import page
import pairs
import results

# One function of a library that reads the clock twice and calls the server once per exchange.
PROFILE = """\
# callgrind format
version: 1
positions: line
events: Ir

ob=(1) /somewhere/pgnetlat.so
fl=(1) wire.c
fn=(1) wire_flush
10 {own}
fi=(2) clock.h
+3 2
fe=(1)
cob=(2) /lib/libc.so.6
cfi=(3) ???
cfn=(2) clock_gettime@@GLIBC_2.17
calls={reads} 0
20 {clock}
cob=(3) /bin/postgres
cfn=(3) 0x0000000000123456
calls={exchanges} 0
21 1000

ob=(2)
fl=(3)
fn=(2)
0 {clock}

ob=(3)
fn=(4) PostgresMain'2
0 500
cob=(1)
cfn=(1)
calls={exchanges} 0
0 5000

totals: 1
"""


def profile(exchanges):
    with tempfile.NamedTemporaryFile("w", suffix=".callgrind") as file:
        file.write(PROFILE.format(own=100 * exchanges, reads=2 * exchanges,
                                  clock=20 * exchanges, exchanges=exchanges))
        file.flush()
        return callgrind.Profile.read(file.name)


class TestCallgrind(unittest.TestCase):
    def test_counts(self):
        one = profile(3)
        self.assertEqual(one.functions("pgnetlat.so")["wire_flush"], 302)
        self.assertEqual(one.self_cost[("postgres", "PostgresMain")], 500)
        self.assertEqual(one.instructions, 302 + 60 + 500)
        self.assertEqual(one.clock_reads(), 6)

    def test_difference(self):
        one = profile(110).per(profile(10), 100)
        self.assertEqual(one.functions("pgnetlat.so")["wire_flush"], 100)
        self.assertEqual(one.instructions, 120)
        self.assertEqual(one.clock_reads(), 2)
        self.assertEqual(one.clock_readers("pgnetlat.so"), {"wire_flush": 2})

    def test_wrapped_functions_are_no_helpers(self):
        helpers = profile(5).helpers("pgnetlat.so")
        self.assertEqual(helpers, {("wire_flush", "clock_gettime@@GLIBC_2.17"): (10, 100)})


class TestPairs(unittest.TestCase):
    Slice = collections.namedtuple("Slice", "number side cost")

    def test_loss(self):
        # the machine gets twice as slow half-way; B always costs 25 % more
        slices = [self.Slice(2 * n + (side == "B"), side, cost * (1 + n // 5))
                  for n in range(10) for side, cost in (("A", 4.0), ("B", 5.0))]
        middle, low, high = pairs.loss(slices, lambda s: s.cost)
        self.assertAlmostEqual(middle, 20)
        self.assertAlmostEqual(low, 20)
        self.assertAlmostEqual(high, 20)

    def test_no_times(self):
        slices = [self.Slice(0, "A", 0), self.Slice(1, "B", 0)]
        self.assertEqual(pairs.loss(slices, lambda s: s.cost), (0, 0, 0))


class TestResults(unittest.TestCase):
    def test_number(self):
        self.assertEqual(results.number(1234567.8), "1 234 568")
        self.assertEqual(results.number(-0.001, 2), "0")
        self.assertEqual(results.number(-1.5, 1), "-1.5")

    def test_verdicts(self):
        found = results.Results("test")
        found.judge("a", 10, 10, "")
        found.judge("b", 11, 10, "ms", required=False)
        found.judge("c", 11, 10, "")
        self.assertEqual([v["met"] for v in found.verdicts], [True, False, False])
        self.assertEqual(results.margin_text(found.verdicts[0]), "just met")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(found.finish(), 1)
        self.assertIn("miss b: 11 ms (budget 10 ms, 10 % above)\nFAIL c: 11 (budget 10, 10 % above)\n", output.getvalue())
        self.assertTrue(output.getvalue().endswith("1 passed, 1 failed, 0 skipped\n"))

    def test_bench_that_did_not_finish(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(results.tell([], [{"what": "a", "why": "b"}], ["scale"]), 1)
        self.assertEqual(output.getvalue(), "skipped: a: b\nFAIL scale: it did not finish\n"
                                            "0 passed, 1 failed, 1 skipped\n")


class TestPage(unittest.TestCase):
    def verdict(self, value, of="", **more):
        found = results.Results("test")
        found.judge("loss of time", value, 10, "%", of=of, **more)
        return found.verdicts[0]

    def test_worst_of_a_goal_is_shown(self):
        lines = list(page.goals([self.verdict(3, "here"), self.verdict(11, "there", interval=(9, 12))]))
        self.assertEqual(lines, ["| Loss of time | 10 % | 11 % (there) | **1 of 2, 1 open** |\n"])

    def test_reasons_are_those_of_what_is_missed(self):
        self.assertEqual(page.missed([self.verdict(3)]), "")
        self.assertEqual(page.missed([{**self.verdict(11), "goal": "sampler"}]),
                         "### Bounds that are missed or just met\n\n" + page.REASONS["sampler"] + "\n")

    def test_a_line_is_replaced_or_new(self):
        text = "- **Views**: 1\n- **Memory**: 2\n"
        self.assertEqual(page.put_line(text, "- **Views**: 3\n", "- **Views**", "- **Memory**"),
                         "- **Views**: 3\n- **Memory**: 2\n")
        self.assertEqual(page.put_line(text, "- **More**: 3\n", "- **More**", "- **Memory**"),
                         "- **Views**: 1\n- **More**: 3\n- **Memory**: 2\n")


if __name__ == "__main__":
    unittest.main()
