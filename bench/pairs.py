"""Paired slices: how much more one side costs than the other, with a confidence interval."""

import collections
import random
import statistics

RESAMPLES = 2000


def loss(slices, cost):
    """The percentage by which side B is slower than side A: median and 95 % interval.

    "cost" is a slice's time per transaction, so that the loss of one pair is
    1 - B's rate / A's rate.  The interval is a bootstrap of the pairs.
    """
    pairs = collections.defaultdict(dict)
    for one in slices:
        pairs[one.number // 2][one.side] = cost(one)
    losses = [100 * (1 - pair["A"] / pair["B"]) for pair in pairs.values() if pair["B"]]
    if not losses:                      # the kernel does not report processor times
        return (0.0, 0.0, 0.0)
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(losses, k=len(losses)))
                     for _ in range(RESAMPLES))
    return (statistics.median(losses), medians[int(0.025 * RESAMPLES)],
            medians[int(0.975 * RESAMPLES) - 1])
