"""The look of every figure: one colour and one line style per controller, sizes, file formats.

The colours are Okabe and Ito's, and for learned policies those of Paul Tol's muted scheme, which
readers with any of the common colour vision deficiencies can tell apart. Controllers of one family
share a colour and differ in the line style.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quicgym.output_folders import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE_COLUMN = 3.5
"""Inches: the width of a figure in one column of a page with two (IEEE, ACM)."""
TWO_COLUMNS = 7.16
"""Inches: the width of a figure across both columns."""

STYLE: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # TrueType, which publishers ask for
    "svg.fonttype": "none",  # text stays text
}

SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))
DASHES: tuple[Any, ...] = (SOLID, DASHED, DOTTED, DASH_DOT)
HATCHES = ("", "////", "....", "xxxx")
"""Hatches of bars, in the order of DASHES."""
MARKERS = ("o", "s", "^", "D")
"""Markers of points, in the order of DASHES."""

BLACK = "#000000"
ORANGE, SKY, GREEN, BLUE, VERMILION, PINK = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
INDIGO, WINE, OLIVE, TEAL, ROSE, GREY, FOREST = (
    "#332288", "#882255", "#999933", "#44AA99", "#CC6677", "#777777", "#117733",
)  # fmt: skip
DARKEST, LIGHTEST = 0.5, 0.55
"""Shades of a controller's flows: a lighter one would not be seen on white, nor on grey."""


class Look(NamedTuple):
    """How a controller is drawn: its colour, and the place of its style in DASHES and the like."""

    colour: str
    style: int

    @property
    def dashes(self) -> Any:
        """The line style, as Matplotlib takes it."""
        return DASHES[self.style]

    @property
    def hatch(self) -> str:
        """The hatch of bars."""
        return HATCHES[self.style]

    @property
    def marker(self) -> str:
        """The marker of points."""
        return MARKERS[self.style]


PLOTS_FOLDER = "plots"
"""Into which `quicgym plot` draws, in the folder of a result."""

LOOKS = {
    "newreno": Look(BLUE, 0),
    "newreno+": Look(BLUE, 1),
    "linux-reno": Look(BLUE, 2),
    "cubic": Look(ORANGE, 0),
    "cubic+": Look(ORANGE, 1),
    "ibcca-cubic": Look(ORANGE, 2),
    "vegas": Look(SKY, 0),
    "copa": Look(SKY, 1),
    "vivace": Look(SKY, 2),
    "bbr": Look(GREEN, 0),
    "bbr-smooth": Look(GREEN, 1),
    "bbr-extended": Look(GREEN, 2),
    "bbr-combined": Look(GREEN, 3),
    "bbr3": Look(BLACK, 0),
    "prague": Look(BLACK, 1),
    "random": Look(BLACK, 2),
    "ebcc": Look(VERMILION, 0),
    "ibcca": Look(PINK, 0),
    "ledbat++": Look(PINK, 1),
}
"""Looks of quicgym's own controllers."""

NAMES = {
    "newreno": "NewReno",
    "newreno+": "NewReno+",
    "linux-reno": "Linux Reno",
    "cubic": "CUBIC",
    "cubic+": "Cubic+",
    "ibcca-cubic": "IBCCA's CUBIC",
    "vegas": "Vegas",
    "copa": "Copa",
    "vivace": "PCC Vivace",
    "bbr": "BBR",
    "bbr-smooth": "BBR smooth",
    "bbr-extended": "BBR extended",
    "bbr-combined": "BBR combined",
    "bbr3": "BBRv3",
    "prague": "Prague",
    "random": "Random",
    "omniscient": "Omniscient",
    "ebcc": "eBCC",
    "ibcca": "IBCCA",
    "ledbat++": "LEDBAT++",
    "tuning": "Tuning",
    "window": "Window",
    "low-delay": "Low delay",
}


_PLATFORM = re.compile(r"\.(?:cpython-[^:/]*|abi3)\.so(?=:|$)")


def display_name(name: str) -> str:
    """Returns how tables and figures show a controller or a policy, with its parameters.

    A name that quicgym does not bring, such as a user's own, stays as it is, but for the platform
    in the name of a compiled file.
    """
    base, colon, parameters = _PLATFORM.sub(".so", name).partition(":")
    return NAMES.get(base, base) + colon + parameters


LEARNED_COLOURS = {
    "window": FOREST,
    "tuning": OLIVE,
    "low-delay": ROSE,
}
"""Colours of published policies, and of trainings by these names; the seed sets the line style."""
_SEED = re.compile(r"-seed(\d+)$")


def look_of(name: str) -> Look:
    """Returns how a controller or a policy is drawn, in every figure of every command.

    Names are those of results: `cubic`, `ebcc:gamma=3`, `window-seed1`, or a user's own.
    Parameters change the line style, not the colour. A name that is not in the table gets a look
    that follows from the name.
    """
    if name in LOOKS:
        return LOOKS[name]
    base, _, parameters = name.partition(":")
    if base in LOOKS and parameters:
        known = LOOKS[base]
        return Look(known.colour, (known.style + 1 + _number(parameters) % 3) % len(DASHES))
    family = _SEED.sub("", base)
    if family in LEARNED_COLOURS:
        seed = _SEED.search(base)
        style = (int(seed[1]) if seed else 0) + bool(parameters)
        return Look(LEARNED_COLOURS[family], style % len(DASHES))
    number = _number(name)
    colours = (GREY, WINE, TEAL, INDIGO, OLIVE)
    return Look(colours[number % len(colours)], number // len(colours) % len(DASHES))


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Returns the looks of what one figure shows together, no two of them the same.

    Only names outside the table may have to take another look than their own.
    """
    names = list(dict.fromkeys(names))
    found: dict[str, Look] = {}
    for name in sorted(names, key=lambda name: name not in LOOKS):
        look = look_of(name)
        others = [
            Look(colour, style)
            for colour in (look.colour, GREY, WINE, TEAL, INDIGO, OLIVE)
            for style in range(len(DASHES))
        ]
        taken = set(found.values())
        found[name] = next((one for one in (look, *others) if one not in taken), look)
    return {name: found[name] for name in names}


def looks_of_flows(controllers: Mapping[str, str]) -> dict[str, Look]:
    """Returns the look of each flow: a shade of its controller's colour, from dark to light.

    `controllers` has the controller of each flow. A flow whose controller no other flow has looks
    like the controller.
    """
    found: dict[str, Look] = {}
    for controller, look in looks_of(controllers.values()).items():
        flows = [flow for flow, its in controllers.items() if its == controller]
        found |= dict(zip(flows, shades(look, len(flows)), strict=True))
    return {flow: found[flow] for flow in controllers}


def shades(look: Look, count: int) -> list[Look]:
    """Returns the look in so many shades, from dark to light; one has the colour itself."""
    if count == 1:
        return [look]
    own = np.array([int(look.colour[place : place + 2], 16) for place in (1, 3, 5)], float)
    corners = np.array([DARKEST * own, own, own + LIGHTEST * (255 - own)])
    if look.colour == BLACK:  # nothing is darker
        corners = corners[1:]
    ends, places = np.linspace(0, 1, len(corners)), np.linspace(0, 1, count)
    colours = np.column_stack([np.interp(places, ends, channel) for channel in corners.T])
    return [
        look._replace(colour="#" + "".join(f"{round(part):02X}" for part in colour))
        for colour in colours
    ]


def _number(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big")


HEAT_MAP = "cividis"
"""Colour map for numbers: the larger, the brighter, also with a colour vision deficiency
(Nunez, Anderton and Renslow 2018, doi:10.1371/journal.pone.0199239)."""


class FigureFormat(StrEnum):
    """The files that figures are written to."""

    png = "png"
    pdf = "pdf"
    svg = "svg"


def save(figure: Figure, file: Path, format: str = "png") -> Path:
    """Writes a figure to `file` with the format's ending added; equal figures give equal bytes."""
    import matplotlib

    path = file.with_name(f"{file.name}.{format}")
    metadata: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}

    def draw(new: Path) -> None:
        if format == "png":
            write_png(figure, new, STYLE["savefig.dpi"])
        else:
            figure.savefig(new, format=format, metadata=metadata[format])

    with matplotlib.rc_context({"svg.hashsalt": "quicgym"}):
        write_atomically({path: draw})
    return path


def write_png(figure: Figure, file: Path | IO[bytes], dots_per_inch: float) -> None:
    """Writes a figure with the same bytes as savefig's, which draws once more for the layout."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dots_per_inch)
    FigureCanvasAgg(figure).print_png(file)


CAPTIONS_FILE = "captions.md"
"""Titles stand here, not in the figures, which go into papers with captions of their own."""


def write_captions(folder: Path, captions: Mapping[str, str]) -> None:
    """Writes what the figures of a folder show: by file name one sentence or more."""
    lines = [f"- `{name}`: {caption}\n" for name, caption in captions.items()]
    write_atomically({folder / CAPTIONS_FILE: "".join(lines)})
