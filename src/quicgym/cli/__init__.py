"""The command `quicgym`."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from quicgym import Ns3MissingError, ScenarioError, __version__, _core, controllers
from quicgym.agents.training.configuration import load_training, training_names
from quicgym.agents.tuning.search_config import load_search, search_names
from quicgym.agents.tuning.sweep_config import load_sweep, sweep_names
from quicgym.benchmarks.papers.model import PaperError, paper_names
from quicgym.console import say, wide_console
from quicgym.envs import load_scenario, scenario_names
from quicgym.envs.scenarios.files import SCENARIOS
from quicgym.envs.simulation.simulation import ns3_version
from quicgym.errors import TRAIN_PACKAGES, MissingExtraError, UserError

app = typer.Typer(
    help="QUIC congestion control in simulation: baselines, environments, learned agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ResultFormat(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


class ServeDtype(StrEnum):
    """How the numbers of a Box go to an ns3-gym agent."""

    float = "float"
    uint = "uint"


class SpeedFormat(StrEnum):
    """How speed is printed."""

    table = "table"
    json = "json"


class PapersFormat(StrEnum):
    """How the papers' results are shown."""

    table = "table"
    json = "json"
    html = "html"


ScenarioOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="A name from `quicgym scenarios` or a YAML's path; one or more."
    ),
]
SeedsOption = Annotated[int, typer.Option(min=1, help="Runs the seeds 0 to N-1.", metavar="N")]
JobsOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes. Default: all cores.")
]
TrialsOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Trials at the same time. Default: one per core."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of a Ray cluster. Default: this machine alone."),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Skip the runs that DIR already holds.")
]
ControllerOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A name from `quicgym controllers`; one or more."),
]


def _version(show: bool) -> None:
    if show:
        print(f"quicgym {__version__}")
        print(f"commit {_core.commit}")
        print(f"ns-3 {ns3_version() or 'not installed'}")
        print(f"Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Version, git commit, ns-3's and Python's version.",
        ),
    ] = False,
) -> None:
    pass


def _epilog(*examples: str) -> str:
    return "Examples:\n\n\b\n" + "\n".join(f"  {example}" for example in examples)


@app.command(
    epilog=_epilog(
        "quicgym baselines",
        "quicgym baselines --scenario ebcc-single --controller bbr ebcc",
        "quicgym baselines --scenario my-network.yaml --seeds 20 --out results/mine",
        "quicgym baselines --engine ns3 --format json > results.json",
    )
)
def baselines(
    scenario: ScenarioOption = None,
    controller: ControllerOption = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="native|ns3",
            help="Default: native, and one ns-3 row per table when no scenario is named.",
        ),
    ] = None,
    seeds: SeedsOption = 5,
    jobs: JobsOption = None,
    format: Annotated[
        ResultFormat, typer.Option(help="What is printed on standard output.")
    ] = ResultFormat.table,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results and figures are written.")
    ] = Path("results/baselines"),
    resume: ResumeOption = False,
) -> None:
    """Run the papers' experiments; print their tables with our values beside the printed ones.

    Without --scenario these are the eBCC paper's. Each runs with NewReno, CUBIC, BBR and eBCC
    unless --controller says otherwise. Results (runs.jsonl, results.json, results.parquet), the
    time series of seed 0 and the figures go to DIR; results of an earlier run are moved to
    DIR/previous-<time>.
    """
    from quicgym.benchmarks.baselines import Request, run_baselines

    request = Request(
        scenarios=scenario or (),
        controllers=controller or (),
        engine=engine,
        seeds=seeds,
        jobs=jobs or os.cpu_count() or 1,
        format=format.value,
        directory=out,
        resume=resume,
        command=shlex.join(["quicgym", *sys.argv[1:]]),
    )
    raise typer.Exit(run_baselines(request))


@app.command(
    epilog=_epilog(
        "quicgym papers",
        "quicgym papers --paper ebcc --format html --out results/ebcc",
        "quicgym papers --without-ns3 --seeds 10",
        "quicgym papers --paper my-paper.yaml",
    )
)
def papers(
    paper: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(paper_names())}, or a YAML of that form; one or more. Default: all.",
        ),
    ] = None,
    seeds: SeedsOption = 5,
    jobs: JobsOption = None,
    format: Annotated[
        PapersFormat,
        typer.Option(help="What is printed; html writes DIR/papers.html, one file for a browser."),
    ] = PapersFormat.table,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results and figures are written.")
    ] = Path("results/papers"),
    resume: ResumeOption = False,
    without_ns3: Annotated[
        bool,
        typer.Option(
            "--without-ns3", help="Leave out what only ns-3 can run: wireless LAN, TCP; hours."
        ),
    ] = False,
) -> None:
    """Run every table, figure and claim of the papers; a verdict on each claim.

    Our value, the printed one and their ratio stand under one another. A claim's verdict (holds,
    holds in part, does not hold) is computed from our runs. Says beforehand how long it will take.
    """
    from quicgym.benchmarks.papers.run import Request, run_papers

    request = Request(
        papers=list(dict.fromkeys(paper or ())),
        seeds=seeds,
        jobs=jobs or os.cpu_count() or 1,
        format=format.value,
        directory=out,
        resume=resume,
        without_ns3=without_ns3,
        command=shlex.join(["quicgym", *sys.argv[1:]]),
    )
    raise typer.Exit(run_papers(request))


@app.command(
    epilog=_epilog(
        "quicgym evaluate",
        "quicgym evaluate --policy baselines ebcc:gamma=60,beta=0.7 --suite papers",
        "quicgym evaluate --policy runs/ppo bbr --seeds 10 --engine ns3 --out results/mine",
        "quicgym evaluate --policy cubic ebcc --suite ebcc-flows-3 --format json",
    )
)
def evaluate(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A controller, one with parameters (ebcc:gamma=60), a published policy, a "
            "policy's JSON, a training run's folder, random, or baselines: all of these; one or "
            "more. Default: baselines.",
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="heldout, papers, validation, a scenario, a distribution, of which each seed "
            "draws a scenario, or a YAML's path.",
        ),
    ] = "heldout",
    seeds: SeedsOption = 5,
    engine: Annotated[str, typer.Option(metavar="native|ns3")] = "native",
    reward: Annotated[
        str, typer.Option(metavar="NAME", help="fair-throughput, delay, power, aurora or orca.")
    ] = "fair-throughput",
    jobs: JobsOption = None,
    format: Annotated[
        ResultFormat, typer.Option(help="What is printed on standard output.")
    ] = ResultFormat.table,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results and figures are written.")
    ] = Path("results/evaluation"),
    resume: ResumeOption = False,
    trust_zip: Annotated[
        bool,
        typer.Option(
            "--trust-zip",
            help="Load models that Stable-Baselines3 saved (.zip), which runs code in them.",
        ),
    ] = False,
) -> None:
    """Compare policies, learned or hand-coded, over a suite of scenarios.

    The interquartile mean of the reward with its 95% interval, and what a network engineer would
    measure; docs/evaluation.md has the formulas. Results (evaluation.json, results.parquet), the
    time series of seed 0 and the figures go to DIR; results of an earlier run are moved to
    DIR/previous-<time>.
    """
    from quicgym.agents.evaluation.evaluate import Request, run_evaluate

    request = Request(
        policies=policy or (),
        suite=suite,
        seeds=seeds,
        engine=engine,
        reward=reward,
        jobs=jobs or os.cpu_count() or 1,
        format=format.value,
        directory=out,
        resume=resume,
        trust_zip=trust_zip,
        command=shlex.join(["quicgym", *sys.argv[1:]]),
    )
    raise typer.Exit(run_evaluate(request))


@app.command(
    epilog=_epilog("quicgym parity", "quicgym parity --scenario ebcc-delay-10 --controller ebcc")
)
def parity(scenario: ScenarioOption = None, controller: ControllerOption = None) -> None:
    """Compare the native engine with ns-3: every delivery must be equal to the nanosecond.

    Default: 1, 3 and 5 flows with NewReno, CUBIC, BBR and eBCC. Exit status 1 and the first
    difference where the engines differ.
    """
    from quicgym.benchmarks.parity import run_parity

    raise typer.Exit(run_parity(scenario or (), controller or ()))


@app.command(epilog=_epilog("quicgym speed", "quicgym speed --format json"))
def speed(
    format: Annotated[
        SpeedFormat, typer.Option(help="What is printed on standard output.")
    ] = SpeedFormat.table,
) -> None:
    """Measure CPU nanoseconds per delivered packet of both engines and of a bare event loop."""
    from quicgym.benchmarks.speed import run_speed

    raise typer.Exit(run_speed(format.value))


@app.command(
    epilog=_epilog(
        "quicgym serve",
        "quicgym serve quicgym/Tuning-v0 --env-arg scenario=ebcc-flows-3 --episodes 10",
        "quicgym serve CartPole-v1 --dtype uint --port 5556 --seed 1",
    )
)
def serve(
    env_id: Annotated[
        str, typer.Argument(metavar="ENV_ID", help="Any registered Gymnasium environment.")
    ] = "quicgym/Tuning-v0",
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="N", help="The agent's TCP port.")
    ] = 5555,
    host: Annotated[str, typer.Option(help="The agent's address.")] = "127.0.0.1",
    dtype: Annotated[
        ServeDtype, typer.Option(help="uint: every Box in fixed point, see docs/ns3gym.md.")
    ] = ServeDtype.float,
    episodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Default: until the agent stays away."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="S", help="Of the first episode.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option(min=0.001, metavar="T", help="How long the agent may take, in s.")
    ] = 600.0,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An argument of the environment; may be given again."
        ),
    ] = None,
) -> None:
    """Serve an environment to an ns3-gym agent, over ns-3 if it is one of quicgym's.

    It connects to the agent, which may start before or after, and again for each episode.
    """
    from quicgym.envs.ns3gym.command import run_serve

    status = run_serve(
        env_id,
        env_arg or (),
        port=port,
        host=host,
        dtype=dtype.value,
        episodes=episodes,
        seed=seed,
        timeout_s=timeout_s,
    )
    raise typer.Exit(status)


@app.command(
    epilog=_epilog(
        "quicgym train switch-dpi",
        "quicgym train ppo seed=1 steps=2e6 hyperparameters.learning_rate=3e-4",
        "quicgym train my-config.yaml --out results/mine",
        "quicgym train switch-dpi --resume",
    )
)
def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help=f"{', '.join(training_names())}, or a YAML of that form.",
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Fields to change, such as steps=1e6."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder. Default: results/train/NAME-seedSEED."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint in DIR.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="auto|cpu|cuda", help="Default: the configuration's.")
    ] = None,
) -> None:
    """Train a policy with Stable-Baselines3; evaluate it on the way, and keep checkpoints.

    A run that was interrupted or killed goes on with --resume, and ends with the very same weights
    (on a CPU). The best policy is in DIR/policy, for `quicgym evaluate --policy DIR`; curves are in
    DIR/tensorboard.
    """
    settings = load_training(config, [*(changes or ()), *([f"device={device}"] if device else ())])
    # PyTorch's threads wait for one another for microseconds; GNU OpenMP's own limit is
    # milliseconds, in which simulations or other programs could use the core.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    from quicgym.agents.training.run import train as train_policy

    directory = out or Path("results/train") / f"{settings.name}-seed{settings.seed}"
    command = shlex.join(["quicgym", *sys.argv[1:]])
    try:
        reward = train_policy(settings, directory, command, resume=resume)
    except KeyboardInterrupt:
        if any((directory / "checkpoints").glob("*.pt")):
            again = command if resume else f"{command} --resume"
            say(
                f"interrupted: the last checkpoint is kept in {directory}; continue with\n  {again}"
            )
        else:
            say("interrupted: there is no checkpoint yet, begin anew")
        raise typer.Exit(130) from None
    print(f"{directory}: reward {reward:.4f} on the suite {settings.evaluation.suite}")


@app.command(
    epilog=_epilog(
        "quicgym trace lte.trace",
        "quicgym trace slow.trace --model 3g --mean-mbps 0.5 --duration-s 300 --seed 7",
    )
)
def trace(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    model: Annotated[
        str, typer.Option(metavar="lte|3g", help="Mean rate, and how often the link is gone.")
    ] = "lte",
    mean_mbps: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="MBPS", help="Mean rate. Default: the model's."),
    ] = None,
    duration_s: Annotated[
        float,
        typer.Option(min=0.1, max=3600, metavar="S", help="Length; the trace repeats after it."),
    ] = 60.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Same seed, same trace.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write a cellular-like rate as a mahimahi trace, for a scenario's `trace`.

    The rate is a reflected Brownian motion with outages, after Sprout (NSDI 2013); packets go in a
    Poisson process of that rate.
    """
    from quicgym.envs.scenarios.cellular_trace import MODELS, cellular_trace, summarize

    if model not in MODELS:
        raise typer.BadParameter(f"{model!r} is no model; there are: {', '.join(MODELS)}")
    chosen = MODELS[model] if mean_mbps is None else replace(MODELS[model], mean_mbps=mean_mbps)
    try:
        times = cellular_trace(chosen, round(duration_s * 1e3), seed)
        with out.open("w" if force else "x", encoding="ascii") as file:
            file.write("\n".join(map(str, times.tolist())) + "\n")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    except FileExistsError:
        raise typer.BadParameter(f"{out} exists; give another name, or --force") from None
    except OSError as error:
        raise typer.BadParameter(
            f"{out} cannot be written ({error.strerror}); give a file in an existing folder"
        ) from None
    summary = summarize(times)
    print(f"{out}: {summary.packets} packets of 1500 bytes in {summary.duration_s:g} s")
    print(f"mean {summary.mean_mbps:.2f} Mbps")
    percentiles = ", ".join(
        f"p{share} {rate:.2f}" for share, rate in summary.percentiles_mbps.items()
    )
    print(f"over 100 ms: {percentiles} Mbps; nothing in {summary.silent_percent:.1f}% of them")


@app.command(
    epilog=_epilog(
        "quicgym compare results/train/tuning-ppo-seed0 results/evaluation",
        "quicgym compare results/train/* --logdir results/compare-algorithms",
    )
)
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folders of `quicgym train` or `quicgym evaluate`."),
    ],
    logdir: Annotated[
        Path, typer.Option(metavar="DIR", help="Where TensorBoard's files are written.")
    ] = Path("results/compare"),
    force: Annotated[
        bool, typer.Option("--force", help="Move what is in DIR aside, whatever it is.")
    ] = False,
) -> None:
    """Write agents and baselines for TensorBoard, under the same tags: their curves overlay.

    Training runs have their curves over the environment steps, policies of an evaluation level
    lines beside them. All must have been evaluated on one suite, for one reward.
    docs/comparison.md has the tags.
    """
    try:
        from quicgym.agents.evaluation.compare import Request, run_compare
    except ImportError as error:  # without the extra `train`
        print(f"quicgym: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    request = Request(runs, logdir, force, shlex.join(["quicgym", *sys.argv[1:]]))
    raise typer.Exit(run_compare(request))


@app.command(
    epilog=_epilog(
        "quicgym sweep ebcc-gamma-beta",
        "quicgym sweep ebcc-gamma-beta seeds=20 parameters.gamma.values=[10,20,30]",
        "quicgym sweep static-tuning samples=500 --jobs 8 --out results/tuned",
        "quicgym sweep my-sweep.yaml --address 10.0.0.1:6379",
    )
)
def sweep(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help=f"{', '.join(sweep_names())}, or a YAML of that form.",
        ),
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Fields of CONFIG to change, dotted."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where results are written.  [default: results/sweeps/NAME]"
        ),
    ] = None,
    jobs: TrialsOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the sweep that DIR holds.")
    ] = False,
    address: AddressOption = None,
) -> None:
    """Sweep a controller's parameters: which are best, and how far the published ones are from it.

    Grid, random or Optuna on Ray Tune; needs the extra `train`. Trials (trials.parquet), a
    sensitivity table, heat maps, TensorBoard's hparams and the best setting (sweep.json) go to DIR;
    results of an earlier sweep are moved to DIR/previous-<time>.
    """
    loaded = load_sweep(config, overrides or ())  # before Ray and PyTorch, which take seconds
    from quicgym.agents.tuning.sweep import Request, run_sweep

    request = Request(
        config=loaded,
        directory=out,
        jobs=jobs,
        resume=resume,
        address=address,
        command=shlex.join(["quicgym", *sys.argv[1:]]),
    )
    raise typer.Exit(run_sweep(request))


@app.command(
    epilog=_epilog(
        "quicgym search ppo-asha",
        "quicgym search ppo-pbt samples=4 changes.steps=2e6 --jobs 2",
        "quicgym search my-search.yaml --out results/mine --resume",
        "quicgym search my-search.yaml --address 10.0.0.1:6379",
    )
)
def search(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help=f"{', '.join(search_names())}, or a YAML of that form.",
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Fields of CONFIG to change, dotted."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where results are written.  [default: results/searches/NAME]"
        ),
    ] = None,
    jobs: TrialsOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the search that DIR holds.")
    ] = False,
    address: AddressOption = None,
) -> None:
    """Search an agent's hyperparameters: many trainings, of which the bad ones end early.

    ASHA or population-based training on Ray Tune; needs the extra `train`. Trials (trials.parquet),
    TensorBoard's hparams, the best hyperparameters (search.json) and the best policy go to DIR;
    results of an earlier search are moved to DIR/previous-<time>. docs/training.md has more.
    """
    loaded = load_search(config, changes or ())  # before Ray and PyTorch, which take seconds
    from quicgym.agents.tuning.search import Request, run_search

    request = Request(
        search=loaded,
        directory=out,
        jobs=jobs,
        resume=resume,
        address=address,
        command=shlex.join(["quicgym", *sys.argv[1:]]),
    )
    raise typer.Exit(run_search(request))


@app.command()
def scenarios() -> None:
    """List the scenarios that quicgym brings."""
    output = Table(box=None, pad_edge=False)
    output.add_column("scenario", no_wrap=True)
    output.add_column("flows", justify="right")
    output.add_column("what it is")
    output.add_column("source")
    for name in scenario_names():
        scenario = load_scenario(name)
        flows = len(list(scenario.single_flows()))
        output.add_row(name, str(flows), scenario.description, scenario.source)
    wide_console().print(output)
    print(f"\nTo change one, copy its file from {SCENARIOS} and pass the copy's path.")


@app.command(name="controllers")
def controllers_command() -> None:
    """List the controllers and their parameters, those of installed packages at the end."""
    output = Table(box=None, pad_edge=False)
    for heading in ("controller, parameter", "default", "range", "unit", "what it is"):
        output.add_column(heading, no_wrap=heading != "what it is")
    unusable = []
    for name in controllers.names():
        try:
            entry = controllers.find(name)
        except ImportError as error:
            unusable.append(str(error))
            continue
        output.add_row(entry.name, "", "", "", _about(entry.description, entry.source))
        for parameter in entry.parameters:
            default = ", ".join(f"{number:g}" for number in parameter.default)
            limits = f"{parameter.minimum:g} to {parameter.maximum:g}"
            text = _about(parameter.description, parameter.source)
            output.add_row(f"  {parameter.name}", default, limits, parameter.unit, text)
    wide_console().print(output)
    for problem in unusable:
        print(f"quicgym: {problem}", file=sys.stderr)


def _about(description: str, source: str) -> str:
    return f"{description} ({source})" if source else description


def spread(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with `--scenario a b` written as `--scenario a --scenario b`."""
    several = ("--scenario", "--controller", "--paper", "--policy")
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in several else ""
        elif option and result[-1] != option:
            result.append(option)
        result.append(argument)
    return result


def main() -> None:
    """Runs the command; bad input ends with exit status 2 and a message, without a traceback."""
    try:
        app(spread(sys.argv[1:]), prog_name="quicgym")
    except (ScenarioError, PaperError, Ns3MissingError, UserError) as error:
        print(f"quicgym: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO):
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"quicgym: {where}{error.strerror}; make room. What is finished is kept: where the "
            "command has --resume, it goes on with that",
            file=sys.stderr,
        )
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in TRAIN_PACKAGES:
            raise
        print(f"quicgym: {MissingExtraError(f'there is no {error.name}')}", file=sys.stderr)
        sys.exit(2)
