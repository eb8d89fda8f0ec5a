"""Shuffle protocols: histograms, sums of numbers, and sums with metric privacy (B, C, D)."""

from optdp.kind import Kind, Start

SAVE = "optdp.shuffle.format:save"
"""What writes a solution's protocol."""
KINDS = (
    Kind(
        "metric-shuffle",
        "a shuffled sum with metric privacy: its noise, its exact profile",
        problem="optdp.shuffle.metric.problem:MetricShuffle",
        solve="optdp.shuffle.metric.solve:solve_metric",
        run="optdp.shuffle.metric.protocol:MetricProtocol",
        target="optdp.shuffle.format:check_target",
        read="optdp.shuffle.format:read_design",
        verify="optdp.shuffle.format:verify_design",
        compare="optdp.shuffle.metric.solve:compare_mechanisms",
        compared="optdp.shuffle.metric.solve:sheet",
        start=Start(
            release="one number: a count, a sum or an average",
            noise="each person adds noise, then a shuffler removes the names",
            sees="the analyst sees shuffled messages; close values are hidden best, distant ones less",
            file="optdp.shuffle.metric:metric-shuffle.toml",
        ),
    ),
    Kind(
        "shuffle-histogram",
        "a shuffled histogram by randomized response, as accurate as epsilon allows",
        problem="optdp.shuffle.histogram:ShuffleHistogram",
        solve="optdp.shuffle.histogram:solve_histogram",
        run="optdp.shuffle.histogram:HistogramProtocol",
        target="optdp.shuffle.format:check_target",
        read="optdp.shuffle.format:read_design",
        verify="optdp.shuffle.format:verify_design",
        start=Start(
            release="a histogram: how many people gave each answer",
            noise="each person adds noise, then a shuffler removes the names",
            sees="the analyst sees all shuffled answers",
            file="optdp.shuffle:shuffle-histogram.toml",
        ),
    ),
    Kind(
        "real-sum",
        "the sum of numbers, from one shuffled message for each person",
        problem="optdp.shuffle.real_sum:RealSum",
        solve="optdp.shuffle.real_sum:solve_real_sum",
        run="optdp.shuffle.real_sum:RealSumProtocol",
        target="optdp.shuffle.format:check_target",
        read="optdp.shuffle.format:read_design",
        verify="optdp.shuffle.format:verify_design",
        start=Start(
            release="one number: a count, a sum or an average",
            noise="each person adds noise, then a shuffler removes the names",
            sees="the analyst sees shuffled messages; all values are hidden equally well",
            file="optdp.shuffle:real-sum.toml",
        ),
    ),
)
