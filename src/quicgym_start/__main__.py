"""`python -m quicgym_start`: the program `quicgym` of this Python."""

from quicgym_start import main

main()
