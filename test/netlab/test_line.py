"""Unit tests of line.py: which line is taken, and what netem is told.

    python3 -m unittest test_line
"""

import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from harness.workspace import Unavailable

import line


def missing(why):
    return lambda: why


def unasked():
    raise AssertionError("nobody needs to know that")


class Choice(unittest.TestCase):
    def test_netem_is_chosen_where_the_kernel_has_it(self):
        self.assertEqual(line.choose("auto", missing(""), unasked), (line.Netem, "the path is the kernel's netem"))

    def test_delay_line_is_chosen_where_it_has_not(self):
        self.assertEqual(line.choose("auto", missing("unknown"), missing("")),
                         (line.DelayLine, "the path is a process that delays packets (no tc netem: unknown)"))

    def test_unavailable_where_both_are_missing(self):
        with self.assertRaisesRegex(Unavailable, r"no tc netem \(unknown\), and needs /dev/net/tun"):
            line.choose("auto", missing("unknown"), missing("needs /dev/net/tun"))

    def test_delay_line_is_chosen_if_it_is_wanted(self):
        self.assertEqual(line.choose("delayline", unasked, missing("")),
                         (line.DelayLine, "the path is a process that delays packets"))
        with self.assertRaisesRegex(Unavailable, "^needs the program cc$"):
            line.choose("delayline", unasked, missing("needs the program cc"))

    def test_netem_is_chosen_if_it_is_wanted(self):
        self.assertEqual(line.choose("netem", missing(""), unasked)[0], line.Netem)
        with self.assertRaisesRegex(Unavailable, "^no tc netem: unknown$"):
            line.choose("netem", missing("unknown"), unasked)

    def test_probes_return_a_text(self):
        for probe in (line.Netem.missing, line.DelayLine.missing):
            self.assertIsInstance(probe(), str)


class Words(unittest.TestCase):
    def words(self, **properties):
        return " ".join(line.Netem.arguments(**{"delay": 0, "rate": 0, "jitter": 0, "loss": 0, "queue": 1 << 20,
                                                **properties}))

    def test_delay_alone(self):
        self.assertEqual(self.words(delay=0.00025), "netem limit 65536 delay 250us rate 100000000000bit -14")

    def test_jitter_only_adds(self):
        # from 5 to 7 ms
        self.assertIn("delay 6000us 1000us", self.words(delay=0.005, jitter=0.002))

    def test_loss(self):
        self.assertIn("loss 1%", self.words(loss=0.01))
        self.assertIn("loss 100%", self.words(loss=1))
        self.assertNotIn("loss", self.words())

    def test_rate_and_queue(self):
        # 1 MB waits, and 50 kB are on the line: 40 Mbit/s for 10 ms
        self.assertIn("limit 700 ", self.words(delay=0.01, rate=40e6, queue=1_000_000))
        self.assertIn("rate 40000000bit -14", self.words(delay=0.01, rate=40e6))

    def test_limits_of_the_queue(self):
        self.assertIn("limit 16 ", self.words(rate=1e6, queue=1))
        self.assertIn("limit 65536 ", self.words(rate=1e9, queue=1 << 30))


if __name__ == "__main__":
    unittest.main()
