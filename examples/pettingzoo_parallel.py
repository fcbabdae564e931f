"""Three flows, three agents: two are eBCC, one is BBR; each earns what its own flow achieves."""

from quicgym import preset_action
from quicgym.envs.parallel import ParallelCongestionControlEnv

environment = ParallelCongestionControlEnv("tuning", "ebcc-flows-3", reward_per_flow=True)
observations, infos = environment.reset(seed=1)
presets = dict(zip(environment.possible_agents, ("ebcc", "ebcc", "bbr"), strict=True))
earned, seconds = dict.fromkeys(presets, 0.0), dict.fromkeys(presets, 0.0)
while environment.agents:
    actions = {agent: preset_action(presets[agent]) for agent in environment.agents}
    observations, rewards, terminations, truncations, infos = environment.step(actions)
    for agent, reward in rewards.items():
        earned[agent] += reward * infos[agent]["step_s"]
        seconds[agent] += infos[agent]["step_s"]
for agent, preset in presets.items():
    print(f"{agent} as {preset}: mean reward over time {earned[agent] / seconds[agent]:.3f}")
environment.close()
