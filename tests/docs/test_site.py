"""The documentation site is built without a warning; the tutorials have tests of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quicgym.controllers import catalogue
from quicgym.envs.registration import environments as registered
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation.metrics import METRICS

for package in ("sphinx", "myst_nb", "furo"):
    pytest.importorskip(package, reason="needs the extra `docs`")
pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    strict = ("-W", "--keep-going", "-q", "-d", folder / "doctrees")
    # Cells that have not run have no lexer for the commands of IPython in them.
    settings = ("-D", "nb_execution_mode=off", "-D", "suppress_warnings=misc.highlighting_failure")
    command = (sys.executable, "-m", "sphinx", *strict, *settings, "-b", "html")
    done = subprocess.run(
        [*command, "docs", folder / "html"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "GITHUB_REPOSITORY"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_every_page_is_built(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()


def test_generated_pages_have_what_the_code_has(site: Path) -> None:
    fields = text(site / "reference/fields.html")
    assert all(f">{name}<" in fields for name in Scenario.model_fields)
    ours = {  # other tests register theirs
        name: cls for name, cls in registered().items() if cls.__module__.startswith("quicgym.")
    }
    assert ours
    for name, cls in ours.items():
        assert cls.__qualname__ in text(site / f"environments/{name}.html")
    controllers = text(site / "reference/controller-parameters.html")
    assert all(f">{entry.name}<" in controllers for entry in catalogue())
    assert all(name in text(site / "reference/metrics.html") for name in METRICS)
    assert "quicgym evaluate" in text(site / "reference/command-line.html")
    assert 'id="quicgym.run"' in text(site / "reference/python-api.html")


def test_links_into_the_repository_lead_to_files(site: Path) -> None:
    page = site / "explanation/architecture.html"
    links = re.findall(r'href="((?:\.\./)+[^"#?]+)"', text(page))
    assert any(link.endswith("envs/batch.py") for link in links)
    assert [link for link in links if not (page.parent / link).resolve().exists()] == []
