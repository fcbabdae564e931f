"""The archive of a submission: the policy's files, what was run, and every result.

An archive is a zip file. `submission.json` says what it is, `policy/` has the policy's files, and
`runs.jsonl` has a line for each run. `submission.json` has the SHA-256 of every other file, and
`digest` is that of `submission.json` itself without this field. The same policy and results make
the same bytes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from quicgym import controllers
from quicgym.agents.policies.by_name import (
    find_policy,
    policy_file,
    pretrained_names,
    split_alias,
)
from quicgym.agents.policies.from_file import FilePolicy
from quicgym.errors import UserError
from quicgym.input_files import MOST_ARCHIVE_BYTES, read_input
from quicgym.output_folders import write_atomically
from quicgym.python_files import is_python_object
from quicgym.validation import StrictModel, problem, validated

FORMAT = "quicgym-submission-1"
ABOUT, RUNS, POLICY = "submission.json", "runs.jsonl", "policy"
NAME = r"^[A-Za-z][\w .+-]{0,59}$"
_CODE = (".py", ".so", ".dylib", ".pyd", ".zip")
"""Files of a policy whose loading runs code in them."""


class SubmissionError(UserError, ValueError):
    """A submission cannot be made or read; the text says why, and what to do."""


class Versions(StrictModel):
    """Programs that the results were made with."""

    quicgym: str
    commit: str
    python: str
    numpy: str
    machine: str


class About(StrictModel):
    """Content of submission.json."""

    format: Literal["quicgym-submission-1"]
    name: Annotated[str, Field(pattern=NAME)]
    policy: str = Field(min_length=1)
    """As `find_policy` takes it; a path begins in the archive."""
    kind: Literal["baseline", "static", "learned"]
    note: str = ""
    """Where the policy comes from, and what it was trained on."""
    suites: dict[str, Annotated[int, Field(ge=1)]]
    """Number of seeds by suite."""
    leagues: tuple[str, ...]
    versions: Versions
    command: str
    files: dict[str, str]
    """SHA-256 by the name in the archive."""
    digest: str = ""

    @field_validator("files")
    @classmethod
    def _inside(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            parts = PurePosixPath(name).parts
            inside = name == RUNS or (len(parts) > 1 and parts[0] == POLICY)
            if not inside or ".." in parts or "\\" in name or str(PurePosixPath(name)) != name:
                raise problem("", name, "is no file of a submission", f"put it below {POLICY}/")
        if RUNS not in files:
            raise problem("", sorted(files), f"has no {RUNS}", "submit again")
        return files

    @model_validator(mode="after")
    def _brings_its_policy(self) -> About:
        """Keeps an archive from naming files and modules of the machine that reads it."""
        of_archive = any(
            self.policy == name or self.policy.startswith(f"{name}:")
            for name in self.files
            if name != RUNS
        )
        known = (*controllers.names(), *pretrained_names())
        if not of_archive and self.policy.partition(":")[0] not in known:
            raise problem(
                "policy", self.policy, "is neither a file of the archive nor a name of quicgym's",
                "submit again",
            )  # fmt: skip
        return self

    def sealed(self) -> About:
        """Returns the same with its digest."""
        plain = self.model_copy(update={"digest": ""})
        return plain.model_copy(update={"digest": sha256(plain.text().encode()).hexdigest()})

    def text(self) -> str:
        """Returns the content of the file."""
        return json.dumps(self.model_dump(), indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Line:
    """A run of a submission: where it belongs to, and its result.

    Attributes:
        part: Suite or league, as in "suite heldout".
        scenario: Name of the scenario.
        seed: The run's seed.
        run: Result, as the job returns it.
    """

    part: str
    scenario: str
    seed: int
    run: Mapping[str, Any]

    def __str__(self) -> str:
        """Returns what identifies the run for a reader."""
        return f"{self.part}, {self.scenario}, seed {self.seed}"

    def text(self) -> str:
        """Returns the bytes that are compared, as a line of text."""
        content = {
            "part": self.part, "scenario": self.scenario, "seed": self.seed, "run": self.run
        }  # fmt: skip
        return json.dumps(content, sort_keys=True, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Archive:
    """What an archive holds.

    Attributes:
        about: Content of submission.json.
        lines: Results of all runs.
        files: Content of the policy's files, by the name in the archive.
    """

    about: About
    lines: Sequence[Line]
    files: Mapping[str, bytes]

    @property
    def runs_code(self) -> bool:
        """Whether loading the policy runs code that is in the archive."""
        return any(name.endswith(_CODE) for name in self.files)

    def rows(self, suite: str, seeds: int) -> list[dict[str, Any]]:
        """Returns the results of the first seeds of a suite, as evaluations keep them.

        Args:
            suite: Name of the suite.
            seeds: Number of seeds.
        """
        return [
            {
                **line.run,
                "policy": self.about.name,  # whatever the line says
                "scenario": line.scenario,
                "seed": line.seed,
            }
            for line in self.lines
            if line.part == f"suite {suite}" and line.seed < seeds
        ]

    def choice(self, folder: Path) -> str:
        """Returns the policy as `find_policy` takes it, under its name.

        Args:
            folder: Folder into which the archive was unpacked.
        """
        policy = self.about.policy
        inside = policy.startswith(f"{POLICY}/")
        return f"{self.about.name}={folder / policy if inside else policy}"

    def unpack(self, folder: Path) -> None:
        """Writes the policy's files below a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def pack(about: About, lines: Sequence[Line], files: Mapping[str, bytes], path: Path) -> About:
    """Writes an archive; returns its description with digests.

    Args:
        about: Description; `files` and `digest` are filled in.
        lines: Results of all runs.
        files: Content of the policy's files, by the name in the archive.
        path: Path of the archive.
    """
    contents = {**files, RUNS: "".join(line.text() for line in lines).encode()}
    digests = {name: sha256(content).hexdigest() for name, content in sorted(contents.items())}
    about = validated(
        About, {**about.model_dump(), "files": digests, "digest": ""}, str(path), SubmissionError
    ).sealed()
    contents[ABOUT] = about.text().encode()
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name)  # of 1980, so that the same content is the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    data = buffer.getvalue()
    write_atomically({path: lambda place: place.write_bytes(data)})
    return about


def read_archive(path: Path) -> Archive:
    """Reads an archive and checks its digests; no code in it is run.

    Raises:
        SubmissionError: The file is no archive, or something in it is not what its digest says.
    """
    contents = _contents(path)
    if ABOUT not in contents:
        raise SubmissionError(f"{path}: has no {ABOUT}; give an archive of `quicgym submit`")
    try:
        data = json.loads(contents.pop(ABOUT))
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{path}: {ABOUT}: not valid JSON: {error}") from None
    about = validated(About, data, f"{path}: {ABOUT}", SubmissionError)
    found = {name: sha256(content).hexdigest() for name, content in contents.items()}
    if about.sealed() != about:
        raise SubmissionError(f"{path}: {ABOUT} was changed: its digest is another; submit again")
    if found != about.files:
        wrong = sorted(set(found.items()) ^ set(about.files.items()))[0][0]
        raise SubmissionError(
            f"{path}: {wrong} was changed, added or removed: {ABOUT} has another SHA-256; submit "
            "again"
        )
    lines = []
    for number, text in enumerate(contents.pop(RUNS).decode().splitlines(), 1):
        try:
            lines.append(Line(**json.loads(text)))
        except (ValueError, TypeError, RecursionError) as error:
            raise SubmissionError(f"{path}: {RUNS}:{number}: {error}; submit again") from None
    places = {(line.part, line.scenario, line.seed) for line in lines}
    if len(places) < len(lines):
        raise SubmissionError(f"{path}: {RUNS}: has a run twice; submit again")
    return Archive(about, lines, contents)


def _contents(path: Path) -> dict[str, bytes]:
    try:
        data = read_input(path, MOST_ARCHIVE_BYTES)
        with zipfile.ZipFile(BytesIO(data)) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
            if total > 8 * MOST_ARCHIVE_BYTES:
                raise SubmissionError(f"{path}: holds {total} bytes, which is too much")
            return {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except OSError as error:
        raise SubmissionError(f"{path}: {error.strerror}; give an archive") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise SubmissionError(
            f"{path}: no archive of `quicgym submit`: {error}; give one, or submit again"
        ) from None


def files_of(
    choice: str, include: Sequence[Path] = (), *, trust_zip: bool = False
) -> tuple[str, dict[str, bytes]]:
    """Returns a policy as an archive names it, and its files by their names in the archive.

    Args:
        choice: The policy, as `find_policy` takes it.
        include: Further files that the policy reads, beside its own file or below its folder.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.

    Raises:
        SubmissionError: A file cannot be put into an archive.
        ScenarioError, PolicyError: `find_policy` raised the error.
    """
    _, named = split_alias(choice)
    policy = find_policy(choice, trust_zip=trust_zip)
    file = policy_file(named)
    if file is None:
        controller, _ = controllers.split_parameters(named)
        if controllers.is_place(controller):
            raise SubmissionError(
                f"{named}: is a module that is installed here; give file.py:Class or a library"
            )
        if include:
            raise SubmissionError(f"--include {include[0]}: {named} reads no file; leave it out")
        return named, {}
    rest = named.removeprefix(str(file))
    if file.is_dir():
        file = file / "policy" / "policy.json"
    paths = [file]
    if file.suffix == ".json":
        paths.append(file.with_suffix(".safetensors"))
    if is_python_object(named) and isinstance(policy, FilePolicy):
        paths += policy.file.paths
    folder = file.resolve().parent
    files: dict[str, bytes] = {}
    for path in [*paths, *include]:
        place = path.resolve()
        if not place.is_relative_to(folder):
            raise SubmissionError(f"{path}: is not below {folder}; move it beside the policy")
        try:
            content = read_input(place, MOST_ARCHIVE_BYTES)
        except OSError as error:
            raise SubmissionError(f"{path}: {error.strerror}; give another file") from None
        files[f"{POLICY}/{place.relative_to(folder).as_posix()}"] = content
    return f"{POLICY}/{file.name}{rest}", files
