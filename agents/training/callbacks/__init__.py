"""What happens between the rollouts of a training: a callback for each subject.

At the beginning of a rollout they act in this order:

| callback | acts | before the next, because |
|---|---|---|
| `ThreadsCallback` | always | all that follows, as the rollout does, takes one thread |
| `FiniteCallback` | always | what is not finite is neither measured nor kept |
| `ExplorationSchedule` | always | a checkpoint has the exploration of its step |
| `ProgressCallback` | always | the bar shows the step of the evaluation that takes time |
| `EvaluationCallback` | at intervals | what a checkpoint promises has to be there before it |
| `CheckpointCallback` | at intervals | its state is the one before randomness begins anew |
| `ReseedingCallback` | at intervals | the rollout begins with what its environments return |
| `LoggingCallback` | in rollouts | |

At every checkpoint all random generators and all simulations begin anew from a seed that comes from
the run's seed and the number of steps so far. So a checkpoint needs no state of simulations, and a
run that was killed and resumed ends with the very same weights as one that was not.
"""
