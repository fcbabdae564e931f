"""Many episodes side by side."""

from quicgym.agents.evaluation import rollouts
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.scenarios.suites import episodes_of, load_suite, parts_of


class Counting:
    def __init__(self):
        self.sizes = []

    def begins(self, batch, cells):
        self.sizes.append(len(cells))

    def stepped(self, batch, actions):
        pass


def test_episodes_beyond_what_is_simulated_at_once_are_the_same(monkeypatch):
    cells = episodes_of(parts_of(load_suite("training-50")), 7)
    bbr = find_policy("bbr")
    together = rollouts.play_all(bbr, cells, threads=1)
    monkeypatch.setattr(rollouts, "_AT_A_TIME", 2)
    watch = Counting()
    apart = rollouts.play_all(bbr, cells, threads=1, watch=watch)
    assert max(watch.sizes) == 2
    assert sum(watch.sizes) == 7
    assert [run.metrics for run in apart] == [run.metrics for run in together]
    assert [run.seed for run in apart] == [seed for _, seed in cells]
