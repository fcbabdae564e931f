"""One environment: eBCC as a constant action, then CUBIC in the agent's place; one reward."""

import gymnasium

import quicgym  # noqa: F401 (registers the environments)

environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-flows-3", other_controllers="bbr")
ebcc = environment.unwrapped.preset_action("ebcc")

for name, options in (("ebcc", None), ("cubic", {"controller": "cubic"})):
    observation, info = environment.reset(seed=1, options=options)
    total = 0.0
    ended = False
    while not ended:
        observation, reward, terminated, truncated, info = environment.step(ebcc)
        total += reward
        ended = terminated or truncated
    print(f"{name}: return {total:.1f}, RTT {info['rtt_ms']:.0f} ms at the end")
environment.close()
