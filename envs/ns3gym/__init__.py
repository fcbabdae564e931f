"""ns3-gym's protocol over ZeroMQ: the simulation's end and the agent's."""

from quicgym.errors import MissingExtraError

try:
    import google.protobuf  # noqa: F401
    import zmq  # noqa: F401
except ImportError as error:
    raise MissingExtraError("ns3-gym's protocol needs protobuf and pyzmq", "ns3gym") from error

from quicgym.envs.ns3gym.client import Ns3GymEnv
from quicgym.envs.ns3gym.errors import MessageError, Ns3GymError, PeerError, PeerGoneError
from quicgym.envs.ns3gym.server import serve

__all__ = ["MessageError", "Ns3GymEnv", "Ns3GymError", "PeerError", "PeerGoneError", "serve"]
