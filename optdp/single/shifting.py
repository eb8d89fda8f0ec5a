"""Weight shifting: a near-optimal table without a linear program (A, Example 2, Algorithm 2 and Remark 7).

Start from geometric noise. Its columns inside the range are more private than they need be (A, Lemma 3),
so some of their mass can go where it does no harm: to the diagonal, where an input reports itself.

    V     the inputs that may be reported truthfully: `gaps[j](x) <= 0` for every privacy constraint `j`
          (and not all 0). For a binomial they are the run qpn/(qp+1-p) <= x <= pn/(p+q(1-p)).
    g_s   the least share in [0, 1] of V's mass that column s needs so that all its constraints hold; the
          tightest decides. The rest of that mass returns to the diagonal of the inputs it came from.

**Algorithm 2.** Shrink V's part of every column by its g_s, and bank what is taken for the input it was
taken from. Then go through V from the least likely input to the likeliest. Each gets its banked mass on
its diagonal. That makes its column more private, so the inputs of V that come later (and matter more) may
leave it, in part or wholly. (The printed algorithm has a slip: `d'_s` is to be taken with `omega_{q^-1}`,
as `c'_s` is.)

**Remark 7, and more of its kind.** Algorithm 2 never touches inputs outside V. Two kinds of exchange
follow, round by round. Both keep the sum of every row, every column private, and every row within its cap:

    pairs     (x, y) gives to (x, x) and (y, x) gives to (y, y), balanced so that a constraint stays as it
              was in both columns (Remark 7), or one alone where a column has room to spare.
    columns   one column at a time: inputs leave it for their own diagonal, its own input enters it, and
              the inputs that protect it at the least cost enter it from theirs. This is a knapsack in the
              column's tightest constraint, solved greedily; the other columns give up to half of the room
              they have. The likeliest columns come first in one round and last in the next.

Exchanges alone run into a dead end where no column has room left; which one it is, per cents apart, hangs on the
last bits of the numbers. So whenever a round gains little, the best table so far is mixed with some of the geometric
noise that it came from, less each time. The mixture keeps every sum, every constraint and every cap, as both tables
do, and every column has room again. The best table of all rounds is the one that counts.

What comes out is **near-optimal, not optimal**, and nothing here proves how near. Measured against the
optimum for binomials (n=50..400, p=.1 and .5, eps=.3, mean absolute error): Algorithm 2 alone 1.9 to 3.5
times as large, with the exchanges 1.06 to 1.10 times; at a small epsilon (n=2000, .02) 1.26 times, for
squared error (n=100) 1.5 and 2.2 times. The error goes to 0 with growing n. For the optimum with a proof use the
linear program (`pairs.py`).

Sums and powers are those of `optdp.numbers.ordered`, so that every machine makes the same moves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from optdp import work
from optdp.errors import ProblemError
from optdp.numbers.ordered import dot, geometric, times
from optdp.single.bound import Draft
from optdp.single.lp import NoiseLP
from optdp.work.account import paced

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MEMORY = 8e9
"""Bytes that the dense tables may take."""
SECONDS = 2e-6
"""What an entry of the table takes, all rounds together."""
ROUNDS = 20
"""Rounds of exchanges."""
GAIN = 5e-3
"""After a round that lowers the error by a smaller share than this, geometric noise is mixed in."""
LOOSENED, FALL = 0.3, 0.8
"""Its share the first time, and how that falls from one time to the next."""
NEGLIGIBLE = 1e-6
"""The share of the error that may be left as it is, in rare inputs and far outputs."""
MARGIN = 1e-12
"""Share of a column's size that is never used up, so that rounding cannot make it break a constraint."""


def shift_weights(lp: NoiseLP, progress: Callable[[str], None] = lambda _: None) -> Draft:
    """Geometric noise, Algorithm 2, then the exchanges of Remark 7.

    Near-optimal, not optimal (see the head of this module), and to be repaired and certified like any draft.
    """
    _check_size(lp)
    size = len(lp.inputs)
    work.announce(SECONDS * size * size, f"Weight shifting among {size:,} inputs", 'Use method = "lp".', progress)
    table = geometric_table(lp)
    shift_to_diagonal(lp, table, progress)
    progress(f"weight shifting: error {expected_error(lp, table):.6g}")
    exchange(lp, table, progress)
    return Draft.dense(table, None, "heuristic", "shifting")


def allowed(lp: NoiseLP) -> Mask:
    """`V`: the inputs that satisfy every privacy constraint by themselves."""
    return np.asarray((lp.gaps <= 0).all(axis=0) & (lp.gaps < 0).any(axis=0), dtype=np.bool_)


def expected_error(lp: NoiseLP, table: Array) -> float:
    """The objective of a table, tails included."""
    losses = (dot(table[i], np.abs(lp.inputs - x) ** lp.power) for i, x in enumerate(lp.inputs))
    return lp.constant + sum(float(cost) * loss for cost, loss in zip(lp.cost, losses, strict=True))


def _check_size(lp: NoiseLP) -> None:
    size = len(lp.inputs)
    if lp.chain is not None:
        raise ProblemError(
            "Weight shifting cannot keep a fallback: it breaks up neighbouring inputs. "
            'Found a fallback_epsilon. Use method = "lp".'
        )
    if (needed := 8.0 * 5 * size * size) > MEMORY:
        raise ProblemError(
            f"Weight shifting holds a dense table. Found {size:,} inputs, which would need about "
            f'{needed / 1e9:,.0f} GB. Use method = "lp".'
        )


def geometric_table(lp: NoiseLP) -> Array:
    """Geometric noise as a table: what its tails leave, or without tails clamped to the range."""
    _check_size(lp)
    size, q = len(lp.inputs), float(lp.problem.q)
    steps = np.arange(size)
    powers = geometric(q, size)
    table: Array = (1 - q) / (1 + q) * powers[np.abs(steps[:, None] - steps)]
    if lp.shape.q is not None:
        table /= lp.mass[:, None]
    else:
        table[:, 0] = powers / (1 + q)
        table[:, -1] = powers[::-1] / (1 + q)
        if size == 1:
            table[:] = 1.0
    table /= table.sum(axis=1, keepdims=True)
    excess = times(lp.gaps, table) - 1e-9 * times(np.abs(lp.gaps), table)
    if (excess > 0).any():
        s = int(lp.inputs[int(np.argmax(excess.max(axis=0)))])
        raise ProblemError(
            "Weight shifting starts from geometric noise, which is private if people are independent. "
            f'Found that output {s} is not private. Use method = "lp".'
        )
    return table


# ---------------------------------------------------------------------- Algorithm 2


def shift_to_diagonal(lp: NoiseLP, table: Array, progress: Callable[[str], None] = lambda _: None) -> None:
    """Algorithm 2, in place. Nothing happens if `V` is empty."""
    left = allowed(lp)
    order = np.flatnonzero(left)[np.argsort(lp.cost[left], kind="stable")]
    bank = np.zeros(len(table))
    for turn, u in enumerate(paced(order.tolist(), "weight shifting", progress)):
        if turn == 0:
            _shrink(lp, table, np.flatnonzero(np.arange(len(table)) != u), left, bank)
        else:
            _shrink(lp, table, order[turn - 1 : turn], left, bank)
        table[u, u] += bank[u]
        left[u] = False


def _shrink(lp: NoiseLP, table: Array, columns: npt.NDArray[np.int64], left: Mask, bank: Array) -> None:
    """Scale the part of `left` in each column by the least `g_s` that keeps it private; bank the rest."""
    part = table[np.ix_(left, columns)]
    needs = times(lp.gaps[:, ~left], table[np.ix_(~left, columns)])
    helps = -times(lp.gaps[:, left], part)
    share = np.where(needs > 0, 1.0, 0.0)
    np.divide(needs, helps, out=share, where=(needs > 0) & (helps > 0))
    g = np.clip(share.max(axis=0), 0.0, 1.0)
    bank[left] += (part * (1 - g)).sum(axis=1)
    table[np.ix_(left, columns)] = part * g


# ---------------------------------------------------------------------- Remark 7


class _State:
    """The rows that are worth improving, with the room that every column has left.

    `load` is kept by adding up changes, accurate relative to the largest `size` that a column has had since
    the last `refresh`; `room` leaves a margin far above that error.
    """

    def __init__(self, lp: NoiseLP, table: Array, rows: slice) -> None:
        outer = np.ones(len(table), dtype=bool)
        outer[rows] = False
        self.table, self.rows, self.power = table, rows, lp.power
        self.inputs, self.cost, self.gaps = lp.inputs[rows], lp.cost[rows], lp.gaps[:, rows]
        self.heights = np.abs(self.gaps)
        self.outputs = lp.inputs
        self.cap = np.full(len(self.inputs), np.inf) if lp.cap is None else lp.cap[rows]
        self.outer_load = times(lp.gaps[:, outer], table[outer])
        self.outer_size = times(np.abs(lp.gaps[:, outer]), table[outer])
        self.part = table[rows]  # a view: the moves write through it
        step = len(table) + 1
        self.diagonal = table.reshape(-1)[rows.start * step : rows.stop * step : step]  # and so is this
        self.refresh()

    def refresh(self) -> None:
        np.maximum(self.part, 0.0, out=self.part)
        self.load = self.outer_load + times(self.gaps, self.part)
        self.size = self.outer_size + times(self.heights, self.part)
        self.errors = np.array([dot(self.part[i], np.abs(self.outputs - x)) for i, x in enumerate(self.inputs)])

    def room(self, columns: slice) -> Array:
        room: Array = np.maximum(-self.load[:, columns] - MARGIN * self.size[:, columns], 0.0)
        return room


def exchange(lp: NoiseLP, table: Array, progress: Callable[[str], None] = lambda _: None) -> None:
    """The exchanges of Remark 7 and their like, in place, each round after the table is mixed with geometric noise.

    Rows that hardly ever occur stay as they are, and so do outputs that hardly ever come out.
    """
    error = expected_error(lp, table)
    if error <= 0:
        return
    rows = lp.core(min(1e-9, NEGLIGIBLE * error / float(lp.problem.baseline)))
    noise, share = geometric_table(lp), LOOSENED
    best, least, before = table.copy(), error, error
    for turn in range(ROUNDS):
        state = _State(lp, table, rows)
        _exchange_pairs(state)
        state.refresh()
        order = _worthwhile(lp, state, NEGLIGIBLE * least)[:: -1 if turn % 2 else 1]
        for c in paced(order.tolist(), f"exchange, round {turn + 1} of {ROUNDS}", progress):
            _rebalance(state, c)
        state.refresh()
        error = expected_error(lp, table)
        if error < least:
            best[:], least = table, error
        progress(f"exchange, round {turn + 1} of {ROUNDS}: error {least:.6g}")
        if error > (1 - GAIN) * before:
            table[:] = (1 - share) * best + share * noise
            share, before = share * FALL, np.inf
        else:
            before = error
    table[:] = best


def _worthwhile(lp: NoiseLP, state: _State, little: float) -> npt.NDArray[np.int64]:
    """The columns by importance, without those outside the rows that together hold hardly any error."""
    columns = np.argsort(-lp.importance, kind="stable")
    held = np.zeros(len(columns))
    for x, cost, row in zip(state.inputs, state.cost, state.part, strict=True):
        held += cost * row * np.abs(state.outputs - x) ** state.power
    held[state.rows] = np.inf
    order = np.argsort(held, kind="stable")
    held[order[np.cumsum(held[order]) <= little]] = 0.0
    return columns[held[columns] > 0]


def _exchange_pairs(state: _State) -> None:
    """One pass over all pairs of inputs, the farthest first; pairs that share no input go together."""
    size = len(state.inputs)
    every = np.arange(size)
    for distance in range(size - 1, 0, -1):
        lower = every[: size - distance]
        for parity in (0, 1):
            x = lower[(lower // distance) % 2 == parity]
            if len(x):
                _exchange(state, x, x + distance)


def _exchange(state: _State, x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> None:
    """Each `(x, y)` gives `d` to `(x, x)` and `(y, x)` gives `e` to `(y, y)`, in the ratio that gains most.

    Candidates are each alone, and for each constraint the ratio that leaves it as it is in both columns.
    """
    shift, table = state.rows.start, state.part
    column_x, column_y = x + shift, y + shift
    gap_x, gap_y = state.gaps[:, x], state.gaps[:, y]
    same = gap_x * gap_y > 0
    larger = np.maximum(np.maximum(np.abs(gap_x), np.abs(gap_y)), 1e-300)
    one, none = np.ones((1, len(x))), np.zeros((1, len(x)))
    d = np.vstack([one, none, np.where(same, np.abs(gap_y) / larger, 0.0)])
    e = np.vstack([none, one, np.where(same, np.abs(gap_x) / larger, 0.0)])
    # what a unit of each candidate (first axis) adds to each constraint (second) of column x; y loses it
    change = d[:, None] * gap_x - e[:, None] * gap_y
    noise = 4e-16 * (d[:, None] * np.abs(gap_x) + e[:, None] * np.abs(gap_y))
    room = state.room(slice(None))
    reach = np.minimum(_quotient(table[x, column_y], d), _quotient(table[y, column_x], e))
    for use, column in ((change, column_x), (-change, column_y)):
        reach = np.minimum(reach, _quotient(room[:, column], np.where(use > noise, use, 0.0)).min(axis=1))
    reach = np.where(np.isfinite(reach), reach, 0.0)
    gain = reach * (d * state.cost[x] + e * state.cost[y])
    best, pairs = gain.argmax(axis=0), np.arange(len(x))
    d, e = (reach * d)[best, pairs], (reach * e)[best, pairs]
    table[x, column_y] -= d
    table[x, column_x] += d
    table[y, column_x] -= e
    table[y, column_y] += e
    moved = gap_x * d - gap_y * e
    grown = np.abs(gap_x) * d + np.abs(gap_y) * e
    state.load[:, column_x] += moved
    state.load[:, column_y] -= moved
    state.size[:, column_x] += grown
    state.size[:, column_y] += grown


def _quotient(room: Array, use: Array) -> Array:
    """`room / use`, and infinity where nothing is used."""
    out = np.full(np.broadcast(room, use).shape, np.inf)
    with np.errstate(over="ignore"):
        np.divide(room, use, out=out, where=use > 0)
    return out


def _rebalance(state: _State, c: int) -> None:
    """Improve column `c`: who leaves it, whether its own input enters it, and who protects it."""
    table, gaps = state.part, state.gaps
    count, own = len(state.inputs), c - state.rows.start
    near, here = state.room(state.rows), state.room(slice(c, c + 1))
    distance = np.abs(state.inputs - state.outputs[c])
    loss = state.cost * distance**state.power
    tight = int(np.argmin(here[:, 0] / np.maximum(state.size[:, c], 1e-300)))
    # leave for the own diagonal; enter from it
    leave = np.minimum(table[:, c], _quotient(near, gaps).min(axis=0) / 2)
    enter = np.minimum(state.diagonal, _quotient(near, -gaps).min(axis=0) / 2)
    enter = np.minimum(enter, np.maximum(state.cap - state.errors, 0.0) / np.maximum(distance, 1.0))
    effects, gains, bounds = [-gaps[tight], gaps[tight]], [loss, -loss], [leave, enter]
    if inside := 0 <= own < count:
        leave[own] = enter[own] = 0.0
        mine = np.minimum(table[own], _quotient(state.room(slice(None)), -gaps[:, [own]]).min(axis=0) / 2)
        mine[c] = 0.0
        effects.append(np.full(len(mine), gaps[tight, own]))
        away = np.abs(state.outputs - state.outputs[c])
        gains.append(state.cost[own] * away**state.power)
        bounds.append(mine)
    gain = np.concatenate(gains)
    take = _knapsack(np.concatenate(effects), gain, np.concatenate(bounds), float(here[tight, 0]))
    leave, enter, mine = take[:count], take[count : 2 * count], take[2 * count :]
    change = times(gaps, enter - leave)
    if inside:
        change += gaps[:, own] * mine.sum()
    share = min(1.0, float(_quotient(here[:, 0], np.where(change > here[:, 0], change, 0.0)).min()))
    if share * dot(gain, take) <= 0:
        return
    leave, enter, mine = share * leave, share * enter, share * mine
    table[:, c] += enter - leave
    state.diagonal += leave - enter
    state.load[:, c] += share * change
    state.load[:, state.rows] += gaps * (leave - enter)
    state.size[:, c] += times(state.heights, enter + leave)
    state.size[:, state.rows] += state.heights * (enter + leave)
    state.errors += (enter - leave) * distance
    if inside:
        total = mine.sum()
        table[own] -= mine
        table[own, c] += total
        state.load -= gaps[:, [own]] * mine
        state.size[:, c] += state.heights[:, own] * total
        state.errors[own] -= dot(mine, away)


def _knapsack(effect: Array, gain: Array, bound: Array, room: float) -> Array:
    """How much of each item to take, `0..bound`, for the largest gain whose total effect is at most `room`.

    Items that gain and use no room are taken whole. The others are two sorted lists: those that gain and use
    room, the best rate first, and those that cost and make room, the cheapest first. Both are taken up to the
    level at which the next unit of room would cost more than it gains.
    """
    take = np.where((gain >= 0) & (effect <= 0), bound, 0.0)
    room = max(room - dot(effect, take), 0.0)
    usable = bound > 0
    uses = np.flatnonzero(usable & (gain > 0) & (effect > 0))
    makes = np.flatnonzero(usable & (gain < 0) & (effect < 0))
    value, price = gain[uses] / effect[uses], gain[makes] / effect[makes]
    uses, makes = uses[np.argsort(-value, kind="stable")], makes[np.argsort(price, kind="stable")]
    value, price = -np.sort(-value), np.sort(price)
    wanted, made = effect[uses] * bound[uses], -effect[makes] * bound[makes]
    ends, supply = np.cumsum(wanted), np.cumsum(np.concatenate([[room], made]))
    levels = np.sort(np.concatenate([[0.0], ends, supply]))
    worth = np.append(value, 0.0)[np.searchsorted(ends, levels, side="right")]
    cost = np.concatenate([[0.0], price, [np.inf]])[np.searchsorted(supply, levels, side="right")]
    level = levels[int(np.argmax(cost >= worth))]
    take[uses] = bound[uses] * _filled(level - (ends - wanted), wanted)
    take[makes] = bound[makes] * _filled(level - supply[:-1], made)
    return take


def _filled(level: Array, capacity: Array) -> Array:
    filled: Array = np.clip(level / np.maximum(capacity, 1e-300), 0.0, 1.0)
    return filled
