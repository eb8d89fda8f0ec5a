"""Rigorous integrals across a strip: probabilities from a generating function with full relative accuracy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import acb, arb

from optdp.math.exact import ball


def across(log_base: Callable[[acb, bool], acb], beta: Fraction, x: int, start: arb, goal: int, beyond: bool) -> arb:
    """`1/(2 pi i) ∫ e^(beta log_base(w) - x w) [/ (e^w - 1)] dw` across the strip `|Im w| <= pi`, through `start`.

    The integrand has period `2 pi i` and is real on the real axis, so that the upper half of a path is enough. For
    small beta the path leans to the right, where `e^(-x w)` falls; for large beta the power falls along the upright.
    """
    power, lean = ball(beta), acb(0.5 if beta < 64 else 0, 1)
    peak = log_base(acb(start), True).real * power - x * start  # not a number unless `start` is left of `a`

    def integrand(t: acb, analytic: bool) -> acb:
        w = start + lean * t
        value = (log_base(w, analytic) * power - w * x - peak).exp()
        return value / (w.exp() - 1) if beyond else value

    small = arb(2) ** -goal
    total = acb.integral(integrand, 0, arb.pi(), rel_tol=small, abs_tol=small**2, eval_limit=10**6, depth_limit=10**4)
    return (total * lean).imag * peak.exp() / arb.pi()
