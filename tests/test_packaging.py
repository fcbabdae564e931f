"""What is installed: two distributions, extras, and what works without them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from quicgym.errors import EXTRA_PACKAGES

ROOT = Path(__file__).parents[1]
NS3_ROOT = ROOT / "sim" / "ns3"
LINUX_ROOT = ROOT / "real" / "linux"
PLUGINS = sorted(file.parent for file in ROOT.glob("real/*/pyproject.toml"))


def project(folder: Path) -> dict[str, Any]:
    content = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, Any] = content["project"]
    return table


def test_workflows_run_known_code_and_hand_out_no_credentials() -> None:
    pinned = {line for line in (ROOT / ".ci/tools.txt").read_text().split() if "==" in line}
    tools = {line.partition("==")[0] for line in pinned}
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(file.read_text())
        assert workflow["permissions"] == {"contents": "read"}, file
        for step in (step for job in workflow["jobs"].values() for step in job["steps"]):
            action, _, commit = step.get("uses", "").partition("@")
            assert not action or re.fullmatch("[0-9a-f]{40}", commit), (file, step)
            # Otherwise it finds no vulnerabilities where it could look at no package.
            assert "pip-audit --" not in step.get("run", "") or "--strict" in step["run"], file
            if action == "actions/checkout":
                assert step["with"]["persist-credentials"] is False, file
            # What the runner's own distribution installs has no version of ours.
            ran = step.get("run", "")
            if " install " in ran and "apt-get install" not in ran:
                *_, option, constraints, tool = step["run"].split()
                assert (option, constraints) == ("--constraint", ".ci/tools.txt"), (file, step)
                assert tool in tools, (file, step)


@pytest.mark.parametrize(
    ("package", "stub", "name"),
    [
        ("quicgym", "_core.pyi", "class NativeSimulation("),
        pytest.param("quicgym_ns3", "_ns3.pyi", "class Ns3Simulation(", marks=pytest.mark.ns3),
    ],
)
def test_the_types_of_a_compiled_module_are_installed_beside_it(
    package: str, stub: str, name: str
) -> None:
    folder = resources.files(package)
    assert (folder / "py.typed").is_file()
    assert name in (folder / stub).read_text(encoding="utf-8")


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_all_distributions_have_one_version() -> None:
    quicgym = project(ROOT)
    assert quicgym["optional-dependencies"]["ns3"] == [f"quicgym-ns3=={quicgym['version']}"]
    assert quicgym["optional-dependencies"]["real"] == [f"quicgym-aioquic=={quicgym['version']}"]
    for folder in (NS3_ROOT, *PLUGINS):
        assert project(folder)["version"] == quicgym["version"]
        assert f"quicgym=={quicgym['version']}" in project(folder)["dependencies"]


def test_every_distribution_that_the_workflow_builds_wheels_of_says_how() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())
    commands = [step.get("run", "") for step in workflow["jobs"]["build"]["steps"]]
    folders = [
        words[3] for command in commands if (words := command.split())[2:3] == ["cibuildwheel"]
    ]
    assert folders == ["--output-dir", "sim/ns3", "real/linux"]
    for folder in (".", *folders[1:]):
        content = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
        table = content["tool"]["cibuildwheel"]
        assert table["test-command"]
        assert {name.partition("-")[0] for name in table["build"]} == {"cp311", "cp312", "cp313"}
        assert table["linux"]["manylinux-x86_64-image"].startswith("manylinux_2_")


def test_the_licence_of_the_host_is_ns3s() -> None:
    assert project(NS3_ROOT)["license"] == "GPL-2.0-only"
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 2" in (
        NS3_ROOT / "LICENSE"
    ).read_text(encoding="utf-8")
    assert project(ROOT)["license"] == "MIT"


def test_errors_name_extras_that_exist() -> None:
    assert set(EXTRA_PACKAGES) <= set(project(ROOT)["optional-dependencies"])


@pytest.mark.ns3
def test_a_host_of_another_build_is_refused_before_it_gets_an_object() -> None:
    done = run_python("""
        from quicgym import _core, Ns3MissingError, Simulation
        _core.interface = "quicgym 0.0.9, sources 0123456789ab"
        try:
            Simulation("ebcc-single", "ns3", controllers="bbr")
        except Ns3MissingError as error:
            print(error)
    """)
    assert "quicgym-ns3 was built for another build of quicgym" in done.stdout, done.stderr
    assert "installed is [quicgym 0.0.9, sources 0123456789ab]" in done.stdout
    assert "pip install . ./sim/ns3" in done.stdout


BLOCKED = "import sys\nfor name in {packages!r}: sys.modules[name] = None\n"


def without_extras(code: str) -> str:
    packages = [name for names in EXTRA_PACKAGES.values() for name in names]
    return BLOCKED.format(packages=packages) + textwrap.dedent(code)


def test_the_core_runs_without_any_extra() -> None:
    done = run_python(
        without_extras("""
        import gymnasium, numpy, quicgym

        environment = gymnasium.make("quicgym/Tuning-v1", scenario="ebcc-single")
        environment.reset(seed=1)
        over, steps = False, 0
        while not over:
            action = quicgym.preset_action("ebcc")
            _, reward, terminated, truncated, _ = environment.step(action)
            over, steps = terminated or truncated, steps + 1
        environments = quicgym.make_vec("quicgym/Rate-v1", num_envs=2, scenario="training")
        environments.reset(seed=1)
        environments.step(environments.action_space.sample())
        print(steps, quicgym.run("ebcc-single", controller="bbr").flows[0].goodput_mbps > 1)
    """)
    )
    assert done.returncode == 0, done.stderr
    steps, has_goodput = done.stdout.split()
    assert int(steps) > 10
    assert has_goodput == "True"


NEEDS_AN_EXTRA = {
    "import quicgym; quicgym.run('ebcc-single', controller='bbr').to_pandas()": "reports",
    "import gymnasium, quicgym; gymnasium.make('quicgym/Rate-v1', render_mode='rgb_array')":
        "reports",
    "import quicgym.envs.ns3gym": "ns3gym",
    "import quicgym.envs.parallel": "multi",
    "import quicgym.envs.sb3": "train",
    "import quicgym; quicgym.load_policy('model.zip', trust_zip=True)": "train",
    "import quicgym; quicgym.load_policy('tuning').actor": "train",
}  # fmt: skip
COMMANDS = {
    "--help": None,
    "--version": None,
    "show scenarios": None,
    "show controllers": None,
    "show policies": None,
    "baselines --scenario ebcc-single --seeds 1": "reports",
    "papers": "reports",
    "evaluate": "reports",
    "serve CartPole-v1": "ns3gym",
}


def test_what_needs_an_extra_names_it() -> None:
    done = run_python(
        without_extras(f"""
        for code in {list(NEEDS_AN_EXTRA)!r}:
            try:
                exec(code, {{}})
            except Exception as error:
                print(type(error).__name__, repr(str(error)))
    """)
    )
    assert len(done.stdout.splitlines()) == len(NEEDS_AN_EXTRA), done.stderr
    for line, (code, extra) in zip(done.stdout.splitlines(), NEEDS_AN_EXTRA.items(), strict=True):
        assert line.startswith("MissingExtraError "), (code, line)
        assert f"pip install '.[{extra}]'" in line, (code, line)
        assert ("whl/cpu" in line) == (extra == "train"), (code, line)


def test_a_command_names_the_extra_that_it_needs() -> None:
    done = run_python(
        without_extras(f"""
        import contextlib, io
        from quicgym.cli import main

        for command in {list(COMMANDS)!r}:
            sys.argv, errors = ["quicgym", *command.split()], io.StringIO()
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                try:
                    main()
                except SystemExit as end:
                    status = end.code or 0
            print(status, repr(errors.getvalue()))
    """)
    )
    assert len(done.stdout.splitlines()) == len(COMMANDS), done.stderr
    for line, (command, extra) in zip(done.stdout.splitlines(), COMMANDS.items(), strict=True):
        assert line.startswith("2 " if extra else "0 "), (command, line)
        assert extra is None or f"pip install '.[{extra}]'" in line, (command, line)
        assert "Traceback" not in line


def sdist(folder: Path, out: Path) -> Path:
    """A source distribution, unpacked. Its build folder is not that of an editable installation."""
    code = (
        "import sys, scikit_build_core.build as b\n"
        "b.build_sdist(sys.argv[1], {'build-dir': sys.argv[1] + '/build'})"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=folder, check=True, capture_output=True
    )
    (archive,) = out.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", out], check=True)
    return archive.with_name(archive.name.removesuffix(".tar.gz"))


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of quicgym."""
    return sdist(ROOT, tmp_path_factory.mktemp("core"))


def test_a_source_distribution_knows_its_commit(core: Path, tmp_path: Path) -> None:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert (core / "COMMIT").read_text() == described.stdout
    # Made from it again, without git, it still does.
    assert (sdist(core, tmp_path) / "COMMIT").read_text() == described.stdout


def test_every_folder_of_the_package_is_linked_into_it(core: Path) -> None:
    """So that editors and type checkers find quicgym.envs; a distribution has the files once."""
    links = {path.name: path for path in (core / "src/quicgym").iterdir() if path.is_symlink()}
    assert links.keys() == {path.parent.name for path in ROOT.glob("*/__init__.py")}
    for name, link in links.items():
        assert link.resolve() == (core / name).resolve()


def test_the_source_distributions_hold_what_they_compile(core: Path, tmp_path: Path) -> None:
    def sources(folder: Path, names: list[str]) -> set[str]:
        return {
            str(path.relative_to(folder))
            for name in names
            for path in (folder / name).glob("*.[ch]pp")
        }

    shared = ["controllers", "sim", "sim/base", "sim/quic", "sim/quic/recovery", "sim/environment"]
    ours = [*shared, "sim/net", "sim/policy", "real/relay", "real/embedding"]
    assert sources(core, ours) == sources(ROOT, ours)
    assert (core / "sim" / "simulator.cmake").exists()
    assert not any((core / folder.relative_to(ROOT)).exists() for folder in (NS3_ROOT, *PLUGINS))
    host = sdist(NS3_ROOT, tmp_path / "host")
    expected = sources(ROOT, [*shared, "sim/ns3"])
    assert sources(host / "source", [*shared, "sim/ns3"]) == expected
    assert (host / "source" / "sim" / "simulator.cmake").exists()
    assert (host / "quicgym_ns3" / "__init__.py").exists()


def test_the_source_distribution_of_kernel_controllers_holds_what_it_compiles(
    tmp_path: Path,
) -> None:
    unpacked = sdist(LINUX_ROOT, tmp_path)
    for pattern in ("bpf/*.[ch]", "loader/*.[ch]pp", "quicgym_linux/*.py"):
        names = sorted(path.name for path in LINUX_ROOT.glob(pattern))
        assert sorted(path.name for path in unpacked.glob(pattern)) == names != []
    assert (unpacked / "include" / "quicgym" / "controller.h").exists()


@pytest.mark.parametrize("is_editable", [True, False])
def test_only_a_regular_installation_is_installed_again(is_editable: bool, tmp_path: Path) -> None:
    if is_editable:
        (tmp_path / "developed").touch()
    for target in ("real", "test", "baselines"):
        done = subprocess.run(
            ["make", "--dry-run", "-C", ROOT, target, f"VENV={tmp_path}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert ("--no-build-isolation" in done.stdout) is not is_editable


@pytest.mark.long
@pytest.mark.ns3
def test_an_editable_host_finds_ns3s_libraries(tmp_path: Path) -> None:
    """As `make develop` installs it: its module stays in the source folder."""
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = tmp_path / "venv" / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "ours.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})"
    )
    environment = os.environ | {"LD_LIBRARY_PATH": ""}
    subprocess.run(
        [python, "-m", "pip", "--quiet", "install", "--no-build-isolation", "--no-deps",
         "--config-settings", "editable.rebuild=true",
         "--config-settings", "editable.verbose=false", "--editable", source / "sim" / "ns3"],
        check=True, timeout=900, env=environment,
    )  # fmt: skip

    def imported() -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [python, "-c", "import quicgym_ns3; print(quicgym_ns3.__file__)"],
            capture_output=True, text=True, timeout=300, env=environment,
        )  # fmt: skip
        assert done.stdout.startswith(str(source)), done.stderr
        return done

    assert imported().stderr == ""
    (source / "sim" / "ns3" / "scheduler.cpp").touch()
    assert "C++ has changed: compiling" in imported().stderr
