"""Controllers that end their process, or fail; in a module that worker processes can import."""

import os

import quicgym


class Exits(quicgym.Controller):
    """Writes a line and ends the process at the first loss of one run in two."""

    def on_start(self, max_datagram_bytes):
        self.exits = None
        self.window_bytes = 60 * max_datagram_bytes

    def on_ack(self, event):
        if self.exits is None:
            self.exits = event.random.below(2) == 0

    def on_loss(self, event):
        if self.exits:
            print("the lights go out", flush=True)
            os._exit(3)


class Fails(Exits):
    """Raises instead."""

    def on_loss(self, event):
        if self.exits:
            raise ValueError("nothing is left")
