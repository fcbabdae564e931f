"""ns3-gym's protocol over ZeroMQ."""

from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError, PeerGoneError

__all__ = ["MessageError", "Ns3GymError", "PeerError", "PeerGoneError"]
