"""256 simulations at a time, each on a path of its own drawn from the training distribution."""

import time

import numpy as np

import quicgym
from quicgym.agents.policies.policy import RandomPolicy

environments = quicgym.make_vec("quicgym/Tuning-v1", num_envs=256, scenario="single", episode_s=10)
policy = RandomPolicy(environments.single_action_space, seed=1)
observations, info = environments.reset(seed=1)
rewards = []
begin = time.perf_counter()
for _ in range(20):
    observations, reward, terminations, truncations, info = environments.step(policy(observations))
    rewards.append(reward)
spent = time.perf_counter() - begin
print(f"{20 * 256 / spent:,.0f} steps per second, mean reward {np.mean(rewards):.2f}")
environments.close()
