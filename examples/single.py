"""One environment: eBCC as a constant action, then CUBIC in the agent's place; one score."""

import gymnasium

import quicgym

environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-flows-3", other_controllers="bbr")
ebcc = environment.unwrapped.preset_action("ebcc")

for name, options in (("ebcc", None), ("cubic", {"controller": "cubic"})):
    scores = quicgym.score(environment, lambda observation: ebcc, range(3), options=options)
    print(f"{name}: score {scores.mean():.3f}, the mean over three seeds")
environment.close()
