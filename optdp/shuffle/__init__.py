"""Shuffle protocols: histograms, sums of numbers, and sums with metric privacy (B, C, D)."""

from optdp.kind import Kind

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
    ),
    Kind(
        "real-sum",
        "the sum of numbers by one shuffled message from everybody",
        problem="optdp.shuffle.real_sum:RealSum",
        solve="optdp.shuffle.real_sum:solve_real_sum",
        run="optdp.shuffle.real_sum:RealSumProtocol",
        target="optdp.shuffle.format:check_target",
        read="optdp.shuffle.format:read_design",
        verify="optdp.shuffle.format:verify_design",
    ),
)
