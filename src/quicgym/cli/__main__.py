"""`python -m quicgym.cli`."""

from quicgym.cli import main

main()
