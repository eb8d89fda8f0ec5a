"""Random problems of every shape: Dirichlet laws, point masses, zeros, D up to 4, epsilon from .001 to 8."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from optdp import Population, SingleLTE


def law(random: Random, size: int) -> list[Fraction]:
    """A random probability vector with a taste for extremes."""
    shape = random.choice(["dirichlet", "dirichlet", "sparse", "point", "steep"])
    if shape == "point":
        weights = [0] * size
        weights[random.randrange(size)] = 1
    elif shape == "sparse":
        weights = [random.choice([0, 0, random.randint(1, 1000)]) for _ in range(size)]
    elif shape == "steep":
        weights = [10 ** random.randint(0, 12) for _ in range(size)]
    else:
        weights = [int(random.gammavariate(random.choice([0.2, 1, 5]), 1) * 10**6) for _ in range(size)]
    if not any(weights):
        weights[random.randrange(size)] = 1
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]


def population(random: Random, small: bool) -> Population:
    kind = random.choice(["binomial", "binomial", "iid", "independent", "counts", "others", "others"])
    people = random.choice([1, *range(2, 13)] if small else [1, 2, *range(3, 61)])
    if kind == "binomial":
        p = random.choice(["0", "1", "1/2", "0.1", "0.9", "1e-6", str(Fraction(random.randint(1, 999), 1000))])
        return Population.binomial(people, p)
    largest = random.randint(1, 4)
    if kind == "iid":
        return Population.iid(max(min(people, 2), people // largest), law(random, largest + 1))
    if kind == "independent":
        laws = [law(random, random.randint(1, 2) + 1) for _ in range(random.randint(1, 4))]
        return Population.independent([random.choice(laws) for _ in range(max(min(people, 2), people // 2))])
    if kind == "counts":
        counts = [random.randint(0, 50) for _ in range(largest)] + [1]
        return Population.from_counts(counts, max(min(people, 2), people // largest), random.choice([0, 1, "1/2"]))
    others = law(random, people + random.randint(0, 1))
    return Population.from_others(others, random.choice([1, law(random, random.randint(2, 3))]))


def problem(seed: int, small: bool = False) -> SingleLTE:
    """Problem number `seed`."""
    random = Random(seed)
    priors = [population(random, small)]
    if random.random() < 0.1:
        priors.append(population(random, small))
    epsilon = Fraction(random.choice([1, 3, 10, 30, 100, 300, 1000, 3000, 8000]), 1000)
    fallback = epsilon * random.choice([2, 5]) if random.random() < 0.15 else None
    return SingleLTE(
        priors,
        epsilon=epsilon,
        fallback_epsilon=fallback,
        tail=random.choice(["geometric", "none"]),
        never_worse=random.random() < 0.7,
        objective=random.choice(["mae", "mae", "mse"]),
        adjacency=random.choice(["unit", "all"]),
    )
