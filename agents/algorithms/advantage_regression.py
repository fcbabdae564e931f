"""What learning to choose by regression has in common: the network, its data and its updates.

Subclasses find out, for observations that a policy meets, how much better or worse each choice is
than the mean of all; the network learns to predict that from everything found out so far, and the
policy takes the choice with the highest prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete

from quicgym.agents.algorithms.replay import ReplayAlgorithm, check_counts
from quicgym.envs.sb3 import Sb3VecEnv
from quicgym.yaml_files import closest

_HUBER_DELTA = 0.2  # of rewards: episodes in which everything goes wrong weigh no more
_MASKED = -10.0  # a prediction that no choice which is compared comes near


class AdvantageRegression(ReplayAlgorithm):
    """Trains a policy of choices, with the interface of Stable-Baselines3's algorithms.

    Args:
        policy: "MlpPolicy".
        env: The environments.
        learning_rate: A number, or a schedule.
        choices: The actions that are compared and taken; all others never are.
        n_updates: Of the weights in an iteration.
        batch_size: Observations in an update.
        weight_decay: Of AdamW.
        policy_kwargs: Of the policy.
        seed: Of the weights.
        device: Of the network.

    Attributes:
        observations: Of all iterations, preprocessed as the network's features take them; float32,
            shape (n, features).
        advantages: Of the choices there; float32, shape (n, choices).

    Raises:
        ValueError: An argument is not valid.
    """

    def __init__(
        self,
        policy: str,
        env: Sb3VecEnv,
        learning_rate: Any,
        choices: np.ndarray,
        *,
        n_updates: int,
        batch_size: int,
        weight_decay: float,
        policy_kwargs: dict[str, Any] | None,
        seed: int | None,
        device: str,
    ) -> None:
        """Makes the network; nothing has been compared."""
        check_counts(n_updates=n_updates, batch_size=batch_size)
        self._choices = choices
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs={
                **(policy_kwargs or {}),
                "optimizer_class": torch.optim.AdamW,
                "optimizer_kwargs": {"weight_decay": weight_decay},
            },
            seed=seed,
            device=device,
            action_spaces=(Discrete,),
        )
        self._updates, self.batch_size = n_updates, batch_size
        self.observations = self.preprocess(np.zeros_like(self.batch.observations[:0]))
        self.advantages = torch.zeros(0, len(choices))

    def _setup_model(self) -> None:
        super()._setup_model()
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.fill_(0.0)
        self._mask_others()

    def _mask_others(self) -> None:
        """Gives all but `choices` a bias with which they are never the best."""
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.bias[np.setdiff1d(np.arange(len(last.bias)), self._choices)] = _MASKED

    def bias_towards(self, action: int) -> None:
        """Makes the untrained policy take an action, whatever it observes.

        Raises:
            ValueError: The action is not among those that are compared.
        """
        if action not in self._choices:
            names = self.batch.choices
            known = ", ".join(names[choice] for choice in self._choices)
            raise ValueError(f"start.preset = {names[action]!r} is none of those compared: {known}")
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.weight.zero_()
            last.bias[action] += 0.05

    def _add(self, preprocessed: torch.Tensor, advantages: np.ndarray) -> None:
        self.observations = torch.cat([self.observations, preprocessed])
        self.advantages = torch.cat([self.advantages, torch.from_numpy(advantages).float()])

    def _predict(self, preprocessed: torch.Tensor) -> torch.Tensor:
        predictions: torch.Tensor = self.policy.action_net(self._latent(preprocessed))
        return predictions

    def _best(self, preprocessed: torch.Tensor) -> np.ndarray:
        with torch.inference_mode():
            predictions = self._predict(preprocessed)
        best: np.ndarray = predictions.argmax(dim=1).cpu().numpy()
        return best

    def train(self) -> None:
        """Learns from all comparisons so far."""
        losses = []
        for _ in range(self._updates):
            chosen = torch.randint(len(self.observations), (self.batch_size,))
            loss = torch.nn.functional.huber_loss(
                self._predict(self.observations[chosen])[:, torch.from_numpy(self._choices)],
                self.advantages[chosen].to(self.device),
                delta=_HUBER_DELTA,
            )
            self.policy.optimizer.zero_grad()
            loss.backward()
            self.policy.optimizer.step()
            losses.append(loss.item())
        self._mask_others()  # again, because the weight decay makes the bias weaker
        self._n_updates += self._updates
        self.logger.record("train/loss", float(np.mean(losses)))
        self.logger.record("train/comparisons", len(self.observations))


def places_of(names: Sequence[str] | None, env: Sb3VecEnv) -> np.ndarray:
    """Returns the places of choices in the environment's action space; None: of all.

    Raises:
        ValueError: One is unknown, there are fewer than two, or one comes twice.
    """
    members = env.environments.batch.choices
    chosen = list(members if names is None else names)
    for name in chosen:
        if name not in members:
            raise ValueError(f"controllers: no choice {name!r}; {closest(name, members)}")
    if len(set(chosen)) < max(2, len(chosen)):
        raise ValueError(f"controllers = {chosen}: give two or more, each once")
    return np.array([members.index(name) for name in chosen])
