"""How the pictures of these scripts look, and where they go; not a script itself.

A script that draws takes the picture's name as its first argument. Without matplotlib it prints its figures and ends.
"""

import sys

try:
    import matplotlib
    from matplotlib import pyplot as plt
except ImportError:
    plt = None

grey = "#808890"  # readable on white and on black


def canvas(*panels, **options):
    """A figure and its axes; ends the script if there is nothing to draw with."""
    if plt is None:
        print("no picture: matplotlib is not installed (pip install 'optdp[plot]')")
        sys.exit(0)
    inks = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), grey)
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "optdp", "font.size": 11, **inks})
    return plt.subplots(*panels, layout="constrained", **options)


def keep(figure, name):
    """Write the picture where the script was told to, or under this name."""
    place = sys.argv[1] if len(sys.argv) > 1 else name
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(place, transparent=True, metadata={"Date": None} if place.endswith(".svg") else None)
    print(f"wrote {place}")
