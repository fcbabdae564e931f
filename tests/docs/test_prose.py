"""The check of the pages' English, .ci/prose.py: what it finds and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Command

from quicgym.errors import UserError
from quicgym.python_files import PythonFile

PROSE = PythonFile(Path(__file__).parents[2] / ".ci/prose.py", UserError).module
Check = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def check(quicgym: Command, tmp_path: Path) -> Check:
    """Runs the check on a page of this text."""

    def run(
        text: str, exceptions: str = "exceptions = []", name: str = "page.md"
    ) -> subprocess.CompletedProcess[str]:
        page, settings = tmp_path / name, tmp_path / "prose.toml"
        page.write_text(text, encoding="utf-8")
        settings.write_text(f'abbreviations = ["ACK"]\n{exceptions}\n', encoding="utf-8")
        main = lambda: sys.exit(PROSE.main())  # noqa: E731
        return quicgym("--settings", settings, page, status=None, main=main)

    return run


LONG = "A sentence " + "with many words " * 9 + "ends here."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"# Page\n\nShort.\n{LONG}\n", "page.md:3: 31 words, 28 at most"),
        (f"- An item.\n- {LONG}\n", "page.md:2: 31 words"),
        ("It reads a file.\n", "begins with 'It' instead of a noun"),
        ("A file. `x` is read. And they stay.\n", "begins with 'And they'"),
        ("A policy of the day runs.\n", "'policy of the day': write 'the current policy'"),
        ("Measured at commit 0123abc.\n", "'commit 0123abc': move what was measured"),
        ("The XQZ is full.\n", "XQZ is not explained"),
        ("The XQZ is full. An extra queue zone (XQZ) follows.\n", "XQZ is not explained"),
    ],
)
def test_what_breaks_a_rule_is_named_with_its_line(check: Check, text: str, complaint: str) -> None:
    done = check(text)
    assert complaint in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    "text",
    [
        "| table |\n|---|\n| It is " + "a word " * 40 + "|\n",
        f"```\n{LONG}\n```\n",
        f"Code:\n\n    {LONG}\n",
        f"# {LONG}\n",
        "See `" + "a word " * 40 + "` for it.\n",
        "An extra queue zone (XQZ) is full. The XQZ empties.\n",
        "The ACK is late.\n",
        "The window, see Ross et al. 2014, is small. A [long](https://example.org/It_is) link.\n",
    ],
)
def test_what_breaks_no_rule_passes(check: Check, text: str) -> None:
    done = check(text)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_was_measured_on_a_day_belongs_into_a_report(check: Check) -> None:
    text = "An earlier version read one file.\n"
    assert "a manual says what holds" in check(text).stdout
    assert check(text, name="CHANGELOG.md").returncode == 0


DOCSTRING = '''def run(seed):
    """Runs a scenario{end}

    Args:
        seed: {text}
            of the run.

    Returns:
        It is not read.
    """


def _private(seed):
    """It is not read."""
'''


@pytest.mark.parametrize(
    ("text", "end", "complaint"),
    [
        ("Of the", ".", "page.py:5: seed begins with 'Of': say what it is: Of the of the run."),
        ("The same", ".", "page.py:5: seed begins with 'The same'"),
        ("Seed. It is", ".", "page.py:5: begins with 'It' instead of a noun"),
        ("Seed", ". It goes on from a checkpoint.", "page.py:2: 'goes on from': write"),
    ],
)
def test_texts_of_arguments_and_summaries_say_what_things_are(
    check: Check, text: str, end: str, complaint: str
) -> None:
    done = check(DOCSTRING.format(text=text, end=end), name="page.py")
    assert complaint in done.stdout and done.returncode == 1
    done = check(DOCSTRING.format(text="Seed", end="."), name="page.py")
    assert (done.returncode, done.stdout) == (0, "")


def exception(reason: str) -> str:
    return f'[[exceptions]]\npage = "page.md"\ncontains = "It reads"\nreason = "{reason}"'


def test_a_sentence_with_a_reason_may_stay(check: Check) -> None:
    done = check("It reads a file.\n", exception("a quotation"))
    assert (done.returncode, done.stdout) == (0, "")


def test_an_exception_needs_a_reason(check: Check) -> None:
    done = check("It reads a file.\n", exception(""))
    assert "no reason for 'It reads'" in done.stdout
    assert done.returncode == 1


def test_exceptions_are_at_most_twenty(check: Check) -> None:
    done = check("It reads a file.\n" * 21, exception("a quotation"))
    assert "21 sentences are exceptions, 20 at most" in done.stdout
    assert done.returncode == 1
