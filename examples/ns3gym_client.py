"""A random agent for any ns3-gym simulation.

Starts the simulation whose command is given, for each episode anew; `{port}` and `{seed}` in it are
replaced. Without a command, `quicgym serve` is the simulation.
"""

import sys

from quicgym.envs.ns3gym import Ns3GymEnv

SERVE = f"{sys.executable} -m quicgym_start serve CartPole-v1 --dtype float --episodes 1"
command = sys.argv[1:] or f"{SERVE} --port {{port}} --seed {{seed}}"

with Ns3GymEnv(port=0, command=command) as env:
    print(env.observation_space, env.action_space)
    env.action_space.seed(0)
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        total, terminated, truncated = 0.0, False, False
        while not (terminated or truncated):
            action = env.action_space.sample()
            observation, reward, terminated, truncated, info = env.step(action)
            total += reward
        print(f"seed {seed}: return {total:g}", "terminated" if terminated else "truncated")
