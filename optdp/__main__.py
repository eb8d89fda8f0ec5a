"""`python -m optdp`: the command line."""

from optdp.cli.main import main

main()
