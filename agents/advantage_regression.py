"""What learning to choose by regression has in common: the network, its data and its updates.

Subclasses find out, for observations that a policy meets, how much better or worse each choice is
than the mean of all; the network learns to predict that from everything found out so far, and the
policy takes the choice with the highest prediction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy

from quicgym.envs.batch import INFO_COLUMNS
from quicgym.envs.sb3 import Sb3VecEnv

_TIME = INFO_COLUMNS.index("time_s")
_HUBER_DELTA = 0.2  # of rewards: episodes in which everything goes wrong weigh no more
_NEVER = -10.0  # a prediction that no choice which is compared comes near


class AdvantageRegression(BaseAlgorithm):
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

    policy_aliases = {"MlpPolicy": ActorCriticPolicy}
    policy: ActorCriticPolicy

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
            support_multi_env=True,
            supported_action_spaces=(Discrete,),
        )
        self._batch = env.environments.batch
        self._choices = choices
        self._updates, self._batch_size = n_updates, batch_size
        self._n_updates = 0
        self._setup_model()
        self.observations = self._condense(np.zeros_like(self._batch.observations[:0]))
        self.advantages = torch.zeros(0, len(choices))

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        policy: Any = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
        self.policy = policy.to(self.device)
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.weight.mul_(0.01)
            last.bias.fill_(_NEVER)
            last.bias[self._choices] = 0.0

    def _lean_towards(self, action: int) -> None:
        """Makes the untrained policy take an action."""
        last: Any = self.policy.action_net
        with torch.no_grad():
            last.bias[action] += 0.05

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 1,
        tb_log_name: str = "run",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> AdvantageRegression:
        """Compares and learns until so many decisions have been made, those of replays included."""
        total, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total:
            callback.on_rollout_start()
            self._update_current_progress_remaining(self.num_timesteps, total)
            random = np.random.default_rng(np.random.randint(2**31, size=4))
            rewards = np.concatenate(list(self._compare(random)))
            callback.update_locals({"rewards": rewards})
            callback.on_step()
            callback.on_rollout_end()
            self._train()
            self.logger.dump(self.num_timesteps)
        callback.on_training_end()
        return self

    @abstractmethod
    def _compare(self, random: np.random.Generator) -> Iterator[np.ndarray]:
        """Adds to the data; yields what the policy's own choices have earned."""

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def _add(self, condensed: torch.Tensor, advantages: np.ndarray) -> None:
        self.observations = torch.cat([self.observations, condensed])
        self.advantages = torch.cat([self.advantages, torch.from_numpy(advantages).float()])

    def _times(self) -> np.ndarray:
        """The time in each simulation, in s: that of its first row, which has an agent."""
        times_s: np.ndarray = self._batch.info[:: self._batch.agent_count, _TIME].copy()
        return times_s

    @property
    def _features(self) -> Any:
        return self.policy.pi_features_extractor.features

    def _condense(self, observations: np.ndarray) -> torch.Tensor:
        condensed: torch.Tensor = self._features.condense(torch.from_numpy(observations))
        return condensed

    def _predict(self, condensed: torch.Tensor) -> torch.Tensor:
        features = self._features.encode(condensed.to(self.device))
        predictions: torch.Tensor = self.policy.action_net(
            self.policy.mlp_extractor.forward_actor(features)
        )
        return predictions

    def _greedy(self, observations: np.ndarray) -> np.ndarray:
        return self._best(self._condense(observations))

    def _best(self, condensed: torch.Tensor) -> np.ndarray:
        with torch.inference_mode():
            predictions = self._predict(condensed)
        best: np.ndarray = predictions.argmax(dim=1).cpu().numpy()
        return best

    def _train(self) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
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
        self._n_updates += self._updates
        self.policy.set_training_mode(False)
        self.logger.record("train/loss", float(np.mean(losses)))
        self.logger.record("train/comparisons", len(self.observations))


def check_counts(**counts: int) -> None:
    """Raises ValueError for an argument that is no whole number above 0."""
    for argument, value in counts.items():
        if int(value) != value or value < 1:
            raise ValueError(f"{argument} = {value}: give a whole number above 0")
