"""The code of the pages: Python runs, YAML is what the page says, and commands are parsed.

Cells of tutorials have a test of their own, and so have README.md's blocks, C++ and C. What cannot
run here stands in a table below, with the reason.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from helpers.processes import run_program

from quicgym.agents.training.configuration import load_training, training_names
from quicgym.agents.tuning.sweeps import load_sweep, sweep_names
from quicgym.cli import group, spread
from quicgym.envs.scenarios.suites import load_entry, load_suite

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "real/*/docs/*.md")
PAGES = [page for place in PLACES for page in sorted(ROOT.glob(place))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

BEGINS = {
    "docs/how-to/link.md": {
        "from quicgym.real import run_link": "`my-client`, `my-server`: the reader's programs"
    },
    "docs/how-to/ns3gym.md": {
        "import gymnasium": "waits for an agent; tests/envs/ns3gym/test_ns3gym_ends.py has one"
    },
    "docs/how-to/comparison.md": {
        "import wandb": "test_trackers.py runs both blocks, and reads what wandb has written",
        "from pathlib import Path": "the same",
    },
}
"""Python blocks that no test can run, by page and first line -> why."""

SHORTER = {
    "docs/how-to/training-libraries.md": ("model.learn(100_000", "model.learn(4096"),
    "docs/reference/environments.md": (
        "num_envs=1024, num_threads=8",
        "num_envs=16, num_threads=1",
    ),
}
"""What is less in the test, so that a page takes seconds."""

MARKS = {
    "docs/how-to/controllers.md": [pytest.mark.ns3],
    "docs/how-to/real.md": [pytest.mark.long],  # two runs of a stack in Python
    "docs/how-to/training.md": [pytest.mark.train],
    "docs/how-to/training-libraries.md": [pytest.mark.train, pytest.mark.long],
}
NEEDS = {
    "docs/how-to/link.md": ["quicgym_aioquic"],
    "docs/how-to/offline.md": ["minari"],
    "docs/how-to/own-agent.md": ["onnx", "onnxruntime"],
    "docs/how-to/real.md": ["quicgym_aioquic"],
    "docs/reference/environments.md": ["pettingzoo"],
    "docs/how-to/training-libraries.md": ["torchrl"],
}
"""Packages of other extras than `train` that a page names."""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, what follows the fence, and its text."""

    line: int
    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.S | re.M)
    return [
        Block(text.count("\n", 0, found.start()) + 1, found[3].strip(), found[4])
        for found in fence.finditer(text)
    ]


BLOCKS = dict(zip(NAMES, map(blocks_of, PAGES), strict=True))


def of_language(language: str) -> dict[str, list[Block]]:
    found = {
        name: [block for block in blocks if block.language == language]
        for name, blocks in BLOCKS.items()
    }
    return {name: blocks for name, blocks in found.items() if blocks}


PYTHON = of_language("python")
YAML = of_language("yaml")


def test_every_block_is_of_a_kind_that_some_test_looks_at() -> None:
    watched = {
        "python": "here",
        "yaml": "here",
        "toml": "here",
        "": "its commands here, its output in test_readme.py; drawings",
        "console": "test_readme.py, and its commands here",
        "cpp": "test_plugin_controller.py, test_new_controller.py, test_own_environments.py",
    }
    others = {
        (name, block.language)
        for name, blocks in BLOCKS.items()
        for block in blocks
        if block.language not in watched and not block.language.startswith("{")
    }
    assert others == set()


def test_no_exception_is_left_over() -> None:
    for name, reasons in BEGINS.items():
        first_lines = {block.text.partition("\n")[0] for block in PYTHON[name]}
        assert set(reasons) <= first_lines
    for name, (long, _) in SHORTER.items():
        assert any(long in block.text for block in PYTHON[name]), name


def save_yaml(name: str, folder: Path) -> None:
    """Writes the page's files, which its Python names."""
    for block in BLOCKS[name]:
        found = re.search(r"^name: (\S+)$", block.text, re.M)
        if block.language == "yaml" and found:
            (folder / f"{found[1]}.yaml").write_text(block.text, encoding="utf-8")


PYTHON_PAGES = [
    pytest.param(name, marks=MARKS.get(name, ()), id=name)
    for name in PYTHON
    if name != "README.md"  # test_readme.py, which also reads what it prints
]


@pytest.mark.parametrize("name", PYTHON_PAGES)
def test_the_python_of_a_page_runs_in_order(name: str, tmp_path: Path) -> None:
    if missing := [package for package in NEEDS.get(name, ()) if find_spec(package) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    save_yaml(name, tmp_path)
    left_out = BEGINS.get(name, {})
    chosen = [block for block in PYTHON[name] if block.text.partition("\n")[0] not in left_out]
    old, new = SHORTER.get(name, ("", ""))
    # The line numbers of an error are those of the page.
    program: list[str] = []
    for block in chosen:
        program += [""] * (block.line - len(program))
        program += (block.text.replace(old, new) if old else block.text).splitlines()
    (tmp_path / "page.py").write_text("\n".join(program), encoding="utf-8")
    done = run_program(tmp_path / "page.py", tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


PATH_OF_ONE_FLOW = """
name: completed
duration_s: 2
bottleneck: {rate_mbps: 10, delay_ms: 10}
access: {rate_mbps: 100, delay_ms: 1}
flows: [{}]
"""
WITHOUT_LINK = "name: completed\nduration_s: 2\nflows: [{}]\n"
COMPLETED: dict[str, Callable[[str], str]] = {
    "wifi:": lambda text: WITHOUT_LINK + text,
    "controller_parameters:": lambda text: PATH_OF_ONE_FLOW.replace("flows: [{}]\n", "") + text,
    "sizes:": lambda text: (
        PATH_OF_ONE_FLOW
        + "short_flows:\n- arrivals_per_s: 1\n"
        + "".join(f"  {line}\n" for line in text.splitlines())
    ),
}
"""Parts of a scenario, by their first line -> a whole scenario with the part."""


@pytest.mark.parametrize("name", YAML)
def test_the_yaml_blocks_are_what_their_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell.trace").write_text("".join(f"{time}\n" for time in range(1, 2000, 2)))
    (tmp_path / "traces/mahimahi").mkdir(parents=True)
    (tmp_path / "traces/mahimahi/Verizon-LTE-short.down").write_text("1\n")
    monkeypatch.setenv("QUICGYM_TRACES", str(tmp_path / "traces"))
    for block in YAML[name]:
        complete = COMPLETED.get(block.text.partition("\n")[0], lambda text: text)
        file = tmp_path / f"line-{block.line}.yaml"
        file.write_text(complete(block.text), encoding="utf-8")
        fields = yaml.safe_load(file.read_text(encoding="utf-8"))
        load: Callable[[str], object] = load_entry
        if not fields.keys().isdisjoint(("training", "search")):
            load = load_sweep
        elif "algorithm" in fields:
            load = load_training
        elif not fields.keys().isdisjoint(("drawn_from", "grid")):
            load = load_suite
        assert load(str(file)), block.line


@pytest.mark.parametrize("name", of_language("toml"))
def test_toml_blocks_name_entry_points(name: str) -> None:
    for block in of_language("toml")[name]:
        (group,) = tomllib.loads(block.text)["project"]["entry-points"]
        assert group.startswith("quicgym.")


OPERATORS = set("|;<>&")


def commands_in(line: str) -> Iterator[list[str]]:
    """The arguments of each `quicgym …` in a line of the shell."""
    line = re.sub(r"\$\([^)]*\)", "text", line.replace("2>&1", ""))
    line = re.sub(r"\$[a-z]+", "1", line)
    if re.search(r"\bquicgym [a-z]", line) is None:
        return
    reader = shlex.shlex(line, posix=True, punctuation_chars="|;<>&")
    reader.whitespace_split = True
    command: list[str] | None = None
    for token in [*reader, ";"]:
        if set(token) <= OPERATORS:
            if command:
                yield command
            command = None
        elif command is not None:
            command.append(token)
        elif token in ("quicgym", "!quicgym"):
            command = []


def command_lines(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Commands of indented and of fenced blocks, each with its line in the page."""
    text = page.read_text(encoding="utf-8")
    fenced = {
        number
        for block in blocks_of(page)
        if block.language in ("", "console", "bash") or "code-cell" in block.language
        for number in range(block.line + 1, block.line + 1 + block.text.count("\n"))
    }
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        before = re.match(r"(\s*(?:\$ |!|sudo )*)quicgym [a-z]+(?: |$)|!for .*quicgym [a-z]", line)
        if before is None or not (number in fenced or line.startswith("    ")):
            continue
        whole, following = line, number
        while whole.endswith("\\"):
            whole = whole[:-1] + lines[following]
            following += 1
        for command in commands_in(whole):
            yield number, command


COMMANDS = {
    f"{name}:{number}: {shlex.join(command)}": command
    for name, page in zip(NAMES, PAGES, strict=True)
    for number, command in command_lines(page)
}
CONFIGURED: dict[str, tuple[list[str], Callable[[str, list[str]], object]]] = {
    "train": (training_names(), load_training),
    "sweep": (sweep_names(), load_sweep),
}
"""Commands whose arguments change a configuration that quicgym brings."""


def parse(arguments: list[str]) -> None:
    """Parses a command line as the command does, without running it."""
    context = group().make_context("quicgym", spread(arguments))
    name, command, rest = group().resolve_command(context, spread(arguments))
    assert name is not None and command is not None
    with command.make_context(name, rest, parent=context) as parsed:
        config = parsed.params.get("config")
        if name in CONFIGURED:
            names, load = CONFIGURED[name]
            if config in names:
                load(config, parsed.params["changes"] or [])
            else:
                assert str(config).endswith(".yaml"), config


def test_commands_have_options_and_fields_that_exist() -> None:
    wrong = []
    for place, command in COMMANDS.items():
        if command[0] == "linux" and find_spec("quicgym_linux") is None:
            continue  # the command comes with quicgym-linux, whose tests parse it
        try:
            parse(command)
        except Exception as error:
            wrong.append(f"{place}: {error}")
    assert wrong == []


def test_targets_extras_and_programs_exist() -> None:
    """Of make, of pip and of python, which take too long or change the machine."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in NAMES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.M)) <= targets, name
        extras = re.findall(r"'(?:\.|quicgym)\[([a-z0-9,]+)\]'|EXTRAS=([a-z0-9,]+)", text)
        named = {extra for pair in extras for group in pair for extra in group.split(",") if extra}
        assert named <= set(project["optional-dependencies"]), name
        for program in re.findall(r"^ {4}python ((?:\w+/)*\w+\.py)", text, re.M):
            folders = (ROOT, ROOT / "examples")
            assert any((folder / program).exists() for folder in folders), (name, program)


def test_commands_are_found_and_a_wrong_one_fails() -> None:
    assert len(COMMANDS) > 60
    loop = "!for seed in 1 2; do quicgym evaluate --policy mine-$seed > /dev/null; done"
    assert list(commands_in(loop)) == [["evaluate", "--policy", "mine-1"]]
    for wrong in (
        ["evaluate", "--polices", "cubic"],
        ["evalate"],
        ["plot"],
        ["train", "tuning-ppo", "step=1"],
        ["train", "tuning-pppo"],
    ):
        with pytest.raises(Exception):  # noqa: B017 (typer's, ConfigError or AssertionError)
            parse(wrong)
