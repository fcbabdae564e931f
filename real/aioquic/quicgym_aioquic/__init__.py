"""quicgym's controllers and policies in aioquic, a QUIC stack in Python.

`quicgym.run(..., stack="aioquic")` finds the stack by itself. See docs/how-to/real.md of quicgym.
"""

from quicgym_aioquic.stack import STACK

__all__ = ["STACK"]
