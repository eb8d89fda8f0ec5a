"""What does it cost to be safe if the shuffler fails?

SGDL-Shuffle is as accurate as a curator, and one message alone tells nearly everything. Geo-Shuffle keeps more to
itself and errs twice as much. Between them lies a choice: say what one message may give away, and get the best error.
"""

from optdp import MetricShuffle, solve

asked = {"n": 100, "k": 1000, "delta": "1e-4", "epsilon": "0.2"}
geo, sgdl = (solve(MetricShuffle(mechanism, **asked)) for mechanism in ("geo", "sgdl"))

print("              one message   error   share beta")
print(f"Geo-Shuffle   {geo.local_epsilon:<13.3f} {geo.mae:<7.2f} {geo.beta:.4f}")
for wanted in ("1.5", "2", "3", "4"):
    best = solve(MetricShuffle("hybrid", local_epsilon=wanted, **asked))
    print(f"hybrid        {best.local_epsilon:<13.3f} {best.mae:<7.2f} {best.beta:.4f}")
print(f"SGDL-Shuffle  {sgdl.local_epsilon:<13.3f} {sgdl.mae:<7.2f} {sgdl.beta:.4f}")
