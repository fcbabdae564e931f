"""Errors between an agent and a simulation."""


class Ns3GymError(RuntimeError):
    """The two ends of ns3-gym's protocol cannot go on."""


class MessageError(Ns3GymError, ValueError):
    """A message, or a value to be sent, is not valid; the text names the field."""


class PeerError(Ns3GymError):
    """The other end is silent, went away, or cannot be reached."""


class PeerGoneError(PeerError):
    """The other end closed the connection."""
