"""A submission made in one folder is verified in another; changed ones are refused."""

from __future__ import annotations

import json
import shutil
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import Command
from helpers.commands import says
from helpers.onnx_files import write_onnx
from helpers.packages import compile_example

from quicgym.agents.policies.by_name import PRETRAINED
from quicgym.benchmarks.submission.archive import (
    About,
    Line,
    SubmissionError,
    pack,
    read_archive,
)
from quicgym.benchmarks.submission.run import default_suites, submission_jobs, versions

AGENT = '''
import json
from pathlib import Path

import numpy as np
import quicgym
from steps import EVERY

decisions = quicgym.Decisions(environment="window", history_length=8)
HALVE = json.loads((Path(__file__).parent / "settings.json").read_text())["halve"]


class Agent:
    """Halves the window at every third decision of a flow."""

    def reset(self):
        self.count = None

    def __call__(self, observations):
        if self.count is None:
            self.count = np.zeros(len(observations), int)
        self.count += 1
        return np.where(self.count % EVERY == 0, HALVE, 3)


agent = Agent()
'''
SHORT = ("--suite", "ebcc-bandwidth-5", "--seeds", "2", "--jobs", "1")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder that has nothing but an archive."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def moved(tmp_path: Path, other: Path, name: str = "mine") -> Path:
    """Moves the archive, and removes everything that it was made of."""
    archive = other / f"{name}.zip"
    shutil.move(tmp_path / f"results/submission/{name}.zip", archive)
    for path in tmp_path.iterdir():
        if path != other:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return archive


def test_an_object_with_state_is_verified_in_another_folder(
    quicgym: Command, tmp_path: Path, other: Path
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "steps.py").write_text("EVERY = 3\n")
    (tmp_path / "settings.json").write_text('{"halve": 0}')
    note = ("--note", "trained on nothing")
    made = quicgym(
        "submit", "agent.py:agent", "--name", "mine", *note, "--include", "settings.json", *SHORT
    )
    archive = moved(tmp_path, other)
    read = read_archive(archive)
    assert read.about.digest in made.stderr
    assert read.about.note == "trained on nothing"
    assert set(read.files) == {
        f"policy/{name}" for name in ("agent.py", "steps.py", "settings.json")
    }
    assert len(read.lines) == 2
    says(quicgym("verify", str(archive), status=2), "policy/agent.py:agent is code", "--trust-code")
    done = quicgym("verify", str(archive), "--all", "--trust-code", "--jobs", "1")
    assert "mine: all runs were run again" in done.stdout
    assert "verified: every byte is the same" in done.stdout


def test_weights_an_onnx_file_and_a_library_are_verified(
    quicgym: Command, tmp_path: Path, other: Path
) -> None:
    for ending in ("json", "safetensors"):
        shutil.copy(PRETRAINED / f"window.{ending}", tmp_path / f"copy.{ending}")
    write_onnx(tmp_path / "net.onnx", recurrent=True)
    compile_example(tmp_path / "libmine.so")
    cases = {
        "json": ("copy.json", "learned", ()),
        "onnx": ("net.onnx", "learned", ()),
        "library": ("libmine.so:aimd:decrease=0.7", "static", ("--trust-code",)),
        "named": ("bbr3", "baseline", ()),
    }
    for name, (policy, kind, _) in cases.items():
        quicgym("submit", policy, "--name", name, *SHORT, "--out", f"out/{name}")
        shutil.move(tmp_path / f"out/{name}/{name}.zip", other / f"{name}.zip")
        assert read_archive(other / f"{name}.zip").about.kind == kind
    for path in tmp_path.iterdir():
        if path != other:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, (_, _, trust) in cases.items():
        done = quicgym(
            "verify", str(other / f"{name}.zip"), "--all", *trust, "--jobs", "1", "--format", "json"
        )
        document = json.loads(done.stdout)
        assert (document["verified"], document["differing"]) == (2, []), name


def test_a_result_that_is_not_true_is_found(quicgym: Command, tmp_path: Path) -> None:
    quicgym("submit", "cubic", "--name", "mine", *SHORT)
    archive = read_archive(tmp_path / "results/submission/mine.zip")
    reward = archive.lines[1].run["reward"]
    better = [
        archive.lines[0],
        Line(*[getattr(archive.lines[1], name) for name in ("part", "scenario", "seed")],
             {**archive.lines[1].run, "reward": reward + 1e-9}),
    ]  # fmt: skip
    pack(archive.about, better, archive.files, tmp_path / "better.zip")
    done = quicgym("verify", "better.zip", "--all", "--jobs", "1", status=1)
    assert "ebcc-bandwidth-5, seed 1: archive / here: reward" in done.stdout
    assert "NOT VERIFIED: 1 runs differ" in done.stdout


def test_rows_are_those_of_the_submission_and_each_is_there_once(
    quicgym: Command, tmp_path: Path
) -> None:
    quicgym("submit", "cubic", "--name", "mine", *SHORT)
    archive = read_archive(tmp_path / "results/submission/mine.zip")
    first, second = archive.lines
    other = Line(first.part, first.scenario, first.seed, {**first.run, "policy": "bbr3"})
    pack(archive.about, [other, second], archive.files, tmp_path / "other.zip")
    rows = read_archive(tmp_path / "other.zip").rows("ebcc-bandwidth-5", 1)
    assert [(row["policy"], row["seed"]) for row in rows] == [("mine", 0)]
    pack(archive.about, [first, first], archive.files, tmp_path / "twice.zip")
    with pytest.raises(SubmissionError, match="has a run twice"):
        read_archive(tmp_path / "twice.zip")


def test_suites_that_are_not_in_the_order_of_the_alphabet_are_verified(
    quicgym: Command, tmp_path: Path
) -> None:
    suites = ("--suite", "ebcc-single", "--suite", "ebcc-bandwidth-5")
    quicgym("submit", "cubic", "--name", "mine", *suites, "--seeds", "1", "--jobs", "1")
    archive = tmp_path / "results/submission/mine.zip"
    done = quicgym("verify", archive, "--all", "--jobs", "1", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["verified"], document["differing"]) == (2, [])


def test_a_tenth_is_drawn_by_the_seed(quicgym: Command, tmp_path: Path) -> None:
    quicgym("submit", "cubic", "--name", "mine", "--suite", "beside-cubic", "--jobs", "1")
    archive = "results/submission/mine.zip"
    done = quicgym("verify", archive, "--seed", "5", "--jobs", "1")
    assert "mine: 2 of 12, drawn with --seed 5, runs were run again" in done.stdout


def test_the_same_content_is_the_same_bytes_and_a_resumed_one_too(
    quicgym: Command, tmp_path: Path
) -> None:
    path = tmp_path / "results/submission/mine.zip"
    quicgym("submit", "cubic", "--name", "mine", *SHORT)
    first = sha256(path.read_bytes()).hexdigest()
    archive = read_archive(path)
    pack(archive.about, archive.lines, archive.files, tmp_path / "again.zip")
    assert sha256((tmp_path / "again.zip").read_bytes()).hexdigest() == first


def test_leagues_are_parts_of_a_submission_beside_the_suites() -> None:
    jobs = submission_jobs("mine=vegas", {"ebcc-single": 2}, ["ccbench"], trust_zip=False)
    assert [part for part, _ in jobs] == ["suite ebcc-single"] * 2 + ["league ccbench"] * 785
    result = jobs[2][1].run()
    line = Line(jobs[2][0], jobs[2][1].scenario.name, 0, result)
    assert json.loads(line.text())["run"] == result
    assert len(result["rate_mbps"]) == 4
    assert default_suites()["papers"] == 40


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs.jsonl": b"{}\n"}, "runs.jsonl was changed"),
        ({"policy/more.py": b""}, "policy/more.py was changed, added or removed"),
        ({"submission.json": b"{"}, "not valid JSON"),
    ],
)
def test_changed_archives_are_refused(
    change: dict[str, bytes], words: str, quicgym: Command, tmp_path: Path
) -> None:
    quicgym("submit", "cubic", "--name", "mine", *SHORT)
    path = tmp_path / "results/submission/mine.zip"
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "changed.zip", "w") as archive:
        for name, content in (contents | change).items():
            archive.writestr(name, content)
    says(quicgym("verify", "changed.zip", status=2), words)


def test_an_edited_description_is_refused(quicgym: Command, tmp_path: Path) -> None:
    quicgym("submit", "cubic", "--name", "mine", *SHORT)
    path = tmp_path / "results/submission/mine.zip"
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["submission.json"] = contents["submission.json"].replace(b'"cubic"', b'"bbr"')
    with zipfile.ZipFile(tmp_path / "edited.zip", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    says(quicgym("verify", "edited.zip", status=2), "submission.json was changed")


@pytest.mark.parametrize(
    "name", ["policy/../../out", "/etc/passwd", "policy/..", "out", "policy//a"]
)
def test_no_file_leaves_the_archive(name: str, tmp_path: Path) -> None:
    about = About.model_construct(
        format="quicgym-submission-1", name="mine", policy="cubic", kind="baseline", note="",
        suites={}, leagues=(), versions=versions(), command="", files={}, digest="",
    )  # fmt: skip
    with pytest.raises(SubmissionError, match="is no file of a submission"):
        pack(about, [], {name: b""}, tmp_path / "bad.zip")


@pytest.mark.parametrize("policy", ["./agent.py:agent", "os:path", "policy/gone.json", "/x.json"])
def test_an_archive_names_no_file_or_module_of_the_reader(policy: str, tmp_path: Path) -> None:
    about = About.model_construct(
        format="quicgym-submission-1", name="mine", policy=policy, kind="learned", note="",
        suites={}, leagues=(), versions=versions(), command="", files={}, digest="",
    )  # fmt: skip
    with pytest.raises(SubmissionError, match="neither a file of the archive nor a name"):
        pack(about, [], {"policy/agent.py": b""}, tmp_path / "bad.zip")


def test_what_cannot_be_submitted_says_why(quicgym: Command, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    for arguments, words in (
        (("random", "--name", "mine"), "random is no policy to submit"),
        (("cubic", "--name", "../x"), "--name '../x': begin with a letter"),
        (("cubic", "--name", "x", "--suite", "./mine.yaml"), "others have no such file"),
        (("cubic", "--name", "x", "--league", "nba"), "--league 'nba'"),
        (("cubic", "--name", "x", "--include", "agent.py"), "cubic reads no file"),
        (("gone.json", "--name", "x"), "gone.json"),
    ):
        says(quicgym("submit", *arguments, status=2), words)
    says(quicgym("verify", "gone.zip", status=2), "gone.zip: No such file")
    (tmp_path / "no.zip").write_text("no archive")
    says(quicgym("verify", "no.zip", status=2), "no archive of `quicgym submit`")
