"""Test cases of a specification, for controllers of the catalogue and of foreign QUIC stacks."""
