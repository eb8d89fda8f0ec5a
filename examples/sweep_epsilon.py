"""What does accuracy cost? One problem at every point of a grid, in one table.

The same with the command line, on every core of this machine (extra [dask]), and with a table in a file:
optdp sweep sick-leave.toml --grid epsilon=0.2:1:5 --grid population.p=0.1,0.5 --out sweep.csv
"""

import optdp

problem = {"kind": "single-lte", "epsilon": "0.3", "population": {"kind": "binomial", "n": 60, "p": "0.1"}}
grid = {"epsilon": ["0.2", "0.4", "0.6", "0.8", 1], "population.p": ["0.1", "0.5"]}

# workers=0 solves one point after another in this process. Left out, dask uses every core; a script must then
# call sweep under `if __name__ == "__main__":`, as for everything that starts processes.
rows = optdp.sweep(problem, grid, workers=0)

print("epsilon   p     error   geometric")
for row in rows:
    print(f"{row['epsilon']:<9} {row['population.p']:<5} {row['mae']:.3f}   {row['baseline_mae']:.3f}")

needed = min(row["epsilon"] for row in rows if row["population.p"] == 0.5 and row["mae"] < 0.5)
print(
    f"for p = 0.5 an error below 0.5 needs epsilon {needed}; every row is certified: {all(r['sha256'] for r in rows)}"
)
