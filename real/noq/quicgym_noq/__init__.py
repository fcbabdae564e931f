"""quicgym's controllers and policies in noq, a QUIC stack in Rust.

`quicgym.run(..., stack="noq")` finds the stack by itself. See docs/how-to/real.md of quicgym.
"""

from quicgym_noq.stack import STACK

__all__ = ["STACK"]
