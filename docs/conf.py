"""Sphinx's configuration of the documentation site; `make docs` builds it."""

import os
import sys
from pathlib import Path

import quicgym

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# The tutorials run `quicgym`, also where the virtual environment is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project = "quicgym"
author = copyright = "The quicgym developers"
version = release = quicgym.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "generated_pages",
    "repository_links",
]
exclude_patterns = ["_ext"]
nitpicky = True
# Types without a page: those of other packages, and what functions take and return inside quicgym.
nitpick_ignore_regex = [
    ("py:.*", r"(?!quicgym\.).*"),
    ("py:class", r"quicgym\.(_core|agents|real)\..*"),
    ("py:class", r"quicgym\.envs\.(batch|environment|episodes|interface|scenarios|simulation)\..*"),
]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # as GitHub names them, so that page.md#heading works on both

# The tutorials; a cell that raises fails the build.
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 1200
nb_merge_streams = True

smartquotes = False  # they would join the two hyphens of an option
highlight_language = "none"  # blocks that name no language are mostly commands
# Docstrings write code in single backticks, as Markdown does.
default_role = "code"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"quicgym {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# `make playground` writes it, where Emscripten is installed.
if (playground := Path(__file__).parents[1] / "build" / "playground" / "site").is_dir():
    html_extra_path = [str(playground)]
    tags.add("playground")  # noqa: F821 Sphinx gives it
