"""quicgym's controllers and policies in the TCP of the Linux kernel.

`quicgym link --controller` and `quicgym linux` find the package by themselves. See
real/linux/docs/manual.md.
"""

from quicgym_linux.kernel import KERNEL

__all__ = ["KERNEL"]
