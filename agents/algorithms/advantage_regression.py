"""What learning to choose by regression has in common: the network, its data and its updates.

Subclasses find out, for observations that a policy meets, how much better or worse each choice is
than the mean of all; the network learns to predict that from everything found out so far, and the
policy takes the choice with the highest prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete

from quicgym.agents.algorithms.replay import ReplayAlgorithm, check_counts
from quicgym.envs.sb3 import Sb3VecEnv

_HUBER_DELTA = 0.2  # of rewards: episodes in which everything goes wrong weigh no more
_NEVER = -10.0  # a prediction that no choice which is compared comes near


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
        observations: Of all iterations, condensed as the network's features take them; float32,
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
        self._updates, self._batch_size = n_updates, batch_size
        self.observations = self._condense(np.zeros_like(self._batch.observations[:0]))
        self.advantages = torch.zeros(0, len(choices))

    def _setup_model(self) -> None:
        super()._setup_model()
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.fill_(0.0)
        self._rule_out()

    def _rule_out(self) -> None:
        """Makes all but `choices` as bad as it takes for them never to be the best."""
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.bias[np.setdiff1d(np.arange(len(last.bias)), self._choices)] = _NEVER

    def _lean_towards(self, action: int) -> None:
        """Makes the untrained policy take an action."""
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.bias[action] += 0.05

    def _add(self, condensed: torch.Tensor, advantages: np.ndarray) -> None:
        self.observations = torch.cat([self.observations, condensed])
        self.advantages = torch.cat([self.advantages, torch.from_numpy(advantages).float()])

    def _predict(self, condensed: torch.Tensor) -> torch.Tensor:
        predictions: torch.Tensor = self.policy.action_net(self._latent(condensed))
        return predictions

    def _greedy(self, observations: np.ndarray) -> np.ndarray:
        return self._best(self._condense(observations))

    def _best(self, condensed: torch.Tensor) -> np.ndarray:
        with torch.inference_mode():
            predictions = self._predict(condensed)
        best: np.ndarray = predictions.argmax(dim=1).cpu().numpy()
        return best

    def _train(self) -> None:
        losses = []
        for _ in range(self._updates):
            chosen = torch.randint(len(self.observations), (self._batch_size,))
            loss = torch.nn.functional.huber_loss(
                self._predict(self.observations[chosen])[:, torch.from_numpy(self._choices)],
                self.advantages[chosen].to(self.device),
                delta=_HUBER_DELTA,
            )
            self.policy.optimizer.zero_grad()
            loss.backward()
            self.policy.optimizer.step()
            losses.append(loss.item())
        self._rule_out()  # again, because the weight decay makes it weaker
        self._n_updates += self._updates
        self.logger.record("train/loss", float(np.mean(losses)))
        self.logger.record("train/comparisons", len(self.observations))
