"""`python -m optdp`: the command line."""

from optdp.cli.main import main

if __name__ == "__main__":
    main()
