"""Gaussian noise: its exact privacy profile (Balle and Wang, 2018) and the least noise for a wanted one."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The hockey-stick divergence of `N(0, sigma^2)` and `N(1, sigma^2)`, rounded up by more than its round-off."""
    size = 0.5 / sigma + epsilon * sigma
    near, far = 0.5 / sigma - epsilon * sigma, -size
    found = max(0.0, float(ndtr(near)) - math.exp(epsilon + float(log_ndtr(far))))
    margin = 2.0**-52 * (16.0 + 4.0 * size * (abs(near) + abs(far)) + 4.0 * epsilon)
    return max(found + margin * float(ndtr(near)), 5e-324)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The least standard deviation that makes Gaussian noise of sensitivity 1 (epsilon, delta)-private, rounded up."""
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2.0
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2.0
    root = float(brentq(lambda sigma: math.log(gaussian_delta(sigma, epsilon) / delta), low, high, xtol=1e-13))
    while gaussian_delta(root, epsilon) > delta:
        root *= 1.0 + 1e-12
    return root
