"""What a profiled build is optimised for: packets of many controllers, steps of environments."""

import numpy as np

import quicgym
from quicgym.benchmarks.speed import path_scenarios, speed_scenario

NETWORKS = (speed_scenario(1, 15, 40), speed_scenario(10, 100, 10), speed_scenario(100, 1000, 1))
# In one thread, because an instrumented build counts without atomic operations.
for network in (*NETWORKS, *path_scenarios().values()):
    for controller in ("bbr", "bbr3", "cubic", "newreno", "ebcc", "ibcca", "cubic+"):
        with quicgym.Simulation(network, controllers=controller, trace_interval_ms=None) as run:
            run.run()
for name in ("tuning", "window"):
    environments = quicgym.make_vec(name, 32, scenario="training-50", num_threads=1)
    environments.reset(seed=0)
    actions = np.zeros((32, *environments.single_action_space.shape), np.float32)
    for _ in range(100):
        environments.step(actions)
