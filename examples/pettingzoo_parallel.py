"""Three flows, three agents: two are eBCC, one is BBR; each earns what its own flow achieves."""

from quicgym import preset_action
from quicgym.envs.parallel import ParallelCongestionControlEnv

environment = ParallelCongestionControlEnv("tuning", "ebcc-flows-3", reward_per_flow=True)
observations, infos = environment.reset(seed=1)
presets = dict(zip(environment.possible_agents, ("ebcc", "ebcc", "bbr"), strict=True))
returns = dict.fromkeys(presets, 0.0)
while environment.agents:
    actions = {agent: preset_action(presets[agent]) for agent in environment.agents}
    observations, rewards, terminations, truncations, infos = environment.step(actions)
    for agent, reward in rewards.items():
        returns[agent] += reward
for agent, total in returns.items():
    print(f"{agent} as {presets[agent]}: return {total:.1f}")
environment.close()
