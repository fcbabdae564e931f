"""Checks the English of the Markdown pages and of docstrings: what a program can see of it.

Usage: prose.py [--settings FILE] [--docstrings] [FILE ...]

Without files: all pages of the checkout; with --docstrings all Python files of the package, too.

A sentence has at most 28 words and names its subject. An abbreviation is a common one, is in the
glossary, or is spelled out where the page first uses it. Some words have a better one. Pages
outside docs/reports and the list of changes are a manual and name no days and commits. Tables,
code, headings and quotations are not read.

Of a public docstring the summary and the texts of arguments, attributes and errors are read. A text
says what the thing is: "Seed of the run.", where "Of the run." names nothing.

prose.toml beside this file lists the common abbreviations and the sentences that may stay, each
with its reason.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
MOST_WORDS = 28
MOST_EXCEPTIONS = 20

OPENING = re.compile(
    r"(?:(?:So|And|But) )?(?:It|it|They|they|That|Those|These|This one|The one|Who|What|One)\b"
    r"|This (?:is|was|has|had|does|did|means|makes|gives|takes|holds|costs|can|will|must|may)\b"
)
AVOID = {
    r"policy of the day": "write 'the current policy'",
    r"seeds that chose|which chose neither": "write 'seeds used for the selection'",
    r"level with|to be level": "write 'within 1% of' or 'equal to'",
    r"go(?:es)? on from|went on from": "write 'starts from' or 'continues with'",
    r"who is told": "name the subject",
    r"it pays to|pays by": "write 'gains reward'",
    r"in its own right|by heart|for ever": "say it without the idiom",
    r"needless to say|of course|obviously|basically": "leave it out",
}
# What belongs into a report with a date.
AVOID_IN_MANUAL = {
    r"today|yesterday|nowadays|at the moment": "a manual says what holds for its version",
    r"last session|last time|earlier version|on a day": "a manual says what holds for its version",
    r"commit (?:[0-9a-f]{7,}|CODE)": "move what was measured at a commit to docs/reports",
}
# Where the text of an argument begins with one of these, it does not say what the argument is.
FRAGMENT = re.compile(r"(?:Of|As|That|What|The same|Its|It)\b")
NOUNS = ("begins with 'One'", "begins with 'What'")
"""In a docstring these begin nouns: "One row per flow.", "What came out of a run."."""
SECTION = re.compile(r"(Args|Attributes|Raises):$")
ENTRY = re.compile(r" {4}(\S[^:]*): (.*)")
PAGES = ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "stacks/*/*.md")
PYTHON = (
    "agents", "benchmarks", "controllers", "envs", "real", "src", "stacks/linux", "tests/helpers",
)  # fmt: skip
# Names that begin a sentence with a small letter.
NAMES = r"(?:aioquic|iperf3|mahimahi|netem|noq|ns-?3|quicgym)\b"
# After these a full stop ends no sentence.
SHORTENED = re.compile(r"\b(?:al|cf|e\.g|etc|eq|fig|i\.e|no|p|pp|sec|vs)\.$", re.IGNORECASE)
# No Roman number and no name of a file.
ABBREVIATION = re.compile(r"\b(?![IVX]+\b)[A-Z][A-Z0-9]*[A-Z][A-Z0-9]*(?=s?\b)(?!\.\w)")
FENCE = re.compile(r"(`{3,}|~{3,})")
BULLET = re.compile(r"(?:[-*+]|\d+[.)]) +")
LEFT_OUT = ("|", "#", ">", "<", "![", ":::")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of what is prose: each paragraph and each item of a list."""
    fence = ""
    front_matter = text.startswith("---\n")
    lines: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        mark = FENCE.match(stripped)
        code = bool(fence or mark or front_matter)
        if front_matter:
            front_matter = number == 1 or stripped != "---"
        elif fence:
            fence = "" if mark and mark[1] == fence else fence
        elif mark:
            fence = mark[1]
        indented = line.startswith("    ") and not lines
        if code or indented or stripped.startswith(LEFT_OUT):
            stripped = ""
        bullet = BULLET.match(stripped)
        if lines and (bullet or not stripped):
            yield start, " ".join(lines)
            lines = []
        if stripped:
            start = start if lines else number
            lines.append(stripped[bullet.end() :] if bullet else stripped)


def plain(text: str) -> str:
    """Returns the text without code, targets of links and marks of emphasis."""
    text = re.sub(r"(?:\{[\w:-]+\})?(`+).+?\1", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    return re.sub(r"\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)


def sentences(text: str) -> list[str]:
    """Splits a paragraph of plain text."""
    found: list[str] = []
    for part in re.split(rf"(?<=[.!?])\s+(?:(?![a-z])|(?={NAMES}))", text):
        if found and SHORTENED.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return [part for part in found if part.strip()]


def abbreviations_of_glossary() -> set[str]:
    """Returns the abbreviations among the glossary's terms."""
    if not GLOSSARY.exists():
        return set()
    text = GLOSSARY.read_text(encoding="utf-8")
    terms = re.findall(r"^[^\s#`].*", text, re.M)  # their definitions are indented
    return set(ABBREVIATION.findall("\n".join(terms)))


def spelled_out(abbreviation: str, text: str) -> bool:
    """Tells whether the text has "long name (ABBREVIATION)" or "ABBREVIATION (long name)"."""
    name = rf"{re.escape(abbreviation)}s?"
    return re.search(rf"[a-z]\S* \({name}[,;)]|\b{name} \([a-zA-Z]+[ -][a-z]", text) is not None


def findings(page: Path, known: set[str]) -> Iterator[tuple[int, str, str]]:
    """Yields line, complaint and sentence."""
    path = page.resolve()
    relative = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    dated = relative.is_relative_to("docs/reports") or relative.name == "CHANGELOG.md"
    avoid = AVOID if dated else AVOID | AVOID_IN_MANUAL
    text = page.read_text(encoding="utf-8")
    prose = [(line, plain(paragraph)) for line, paragraph in paragraphs(text)]
    lines = text.splitlines()
    seen = {"CODE"}
    for line, paragraph in prose:
        so_far = plain(" ".join(lines[: line - 1]))
        for sentence in sentences(paragraph):
            so_far += f" {sentence}"
            yield from ((line, *found) for found in complaints(sentence, avoid))
            for abbreviation in ABBREVIATION.findall(sentence):
                if abbreviation in seen | known:
                    continue
                seen.add(abbreviation)
                if not spelled_out(abbreviation, so_far):
                    yield (
                        line,
                        f"{abbreviation} is not explained: spell it out here or add it to the"
                        " glossary, docs/reference/glossary.md",
                        sentence,
                    )


def docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields line and text of the docstrings of what is public in a module or a class."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return
    text = ast.get_docstring(node)
    if text:
        yield node.body[0].lineno, text
    if not isinstance(node, ast.FunctionDef):
        for inner in node.body:
            if (
                not getattr(inner, "name", "").startswith("_")
                or getattr(inner, "name", "") == "__init__"
            ):
                yield from docstrings(inner)


def parts(line: int, text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, name and text of the summary, which has no name, and of each entry."""
    lines = text.splitlines()
    end = lines.index("") if "" in lines else len(lines)
    yield line, "", " ".join(lines[:end])
    in_section = False
    found: tuple[int, str, list[str]] | None = None
    for number, part in enumerate([*lines[end:], "."], line + end):
        entry = ENTRY.match(part) if in_section else None
        if found and (entry or not part.startswith("     ")):
            yield found[0], found[1], " ".join(found[2])
            found = None
        if entry:
            found = number, entry[1], [entry[2]]
        elif found:
            found[2].append(part.strip())
        if SECTION.match(part):
            in_section = True
        elif part and not part.startswith(" "):
            in_section = False


def findings_in_python(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yields line, complaint and text of docstrings."""
    for start, docstring in docstrings(ast.parse(file.read_text(encoding="utf-8"))):
        for line, name, text in parts(start, docstring):
            fragment = FRAGMENT.match(text) if name else None
            if fragment:
                yield line, f"{name} begins with '{fragment[0]}': say what it is", text
            for sentence in [] if fragment else sentences(plain(text)):
                for complaint, part in complaints(sentence, AVOID):
                    if not complaint.startswith(NOUNS):
                        yield line, complaint, part


def complaints(sentence: str, avoid: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yields complaint and sentence, whatever stands around it."""
    words = len(sentence.split())
    if words > MOST_WORDS:
        yield f"{words} words, {MOST_WORDS} at most", sentence
    opening = OPENING.match(sentence)
    if opening:
        yield f"begins with '{opening[0]}' instead of a noun", sentence
    for phrase, better in avoid.items():
        match = re.search(rf"\b(?:{phrase})\b", sentence, re.IGNORECASE)
        if match:
            yield f"'{match[0]}': {better}", sentence


def main() -> int:
    """Prints the findings; returns 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=Path, default=Path(__file__).with_name("prose.toml"))
    parser.add_argument("--docstrings", action="store_true")
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    settings = tomllib.loads(arguments.settings.read_text(encoding="utf-8"))
    exceptions = settings["exceptions"]
    known = set(settings["abbreviations"]) | abbreviations_of_glossary()
    python = [file for top in PYTHON for file in (ROOT / top).rglob("*.py")]
    pages = arguments.files or sorted(
        [
            *(page for pattern in PAGES for page in ROOT.glob(pattern)),
            *(python if arguments.docstrings else ()),
        ]
    )

    problems = []
    allowed = 0
    used = set()
    for page in pages:
        found = findings_in_python(page) if page.suffix == ".py" else findings(page, known)
        for line, complaint, sentence in found:
            for number, entry in enumerate(exceptions):
                if page.as_posix().endswith(entry["page"]) and entry["contains"] in sentence:
                    allowed += 1
                    used.add(number)
                    break
            else:
                problems.append(f"{page}:{line}: {complaint}: {sentence[:160]}")
    for number, entry in enumerate(exceptions):
        if not entry.get("reason", "").strip():
            problems.append(f"{arguments.settings}: no reason for '{entry['contains']}'")
        if number not in used and not arguments.files:
            problems.append(
                f"{arguments.settings}: '{entry['contains']}' is no exception any more: delete it"
            )
    if allowed > MOST_EXCEPTIONS:
        problems.append(
            f"{arguments.settings}: {allowed} sentences are exceptions, {MOST_EXCEPTIONS} at most:"
            " rewrite some of them"
        )
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
