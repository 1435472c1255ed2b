"""A measure of how hard the docs are to read: `python -m tools.readability [PAGE…]` prints a table.

The exit code is 1 if a page exceeds a limit.

Only sentences count: code, tables, headings and pages that a program writes are left out. Flesch's reading ease: 60 and
more is plain English, below 30 is hard for most; technical names such as "deserialize" lower it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pyphen

ROOT = Path(__file__).parents[1]
HYPHENS = pyphen.Pyphen(lang="en_US")  # where a word may be divided: about as often as it has syllables
GENERATED = {
    *("coverage", "example-report", "statements", "surface", "every-release", "libraries", "negative-corpus"),
    "regressions",
}
MEAN_WORDS, MOST_WORDS = 18, 45
"""The limits of a page: words of its sentences on average, and of its longest sentence."""


class Figures(NamedTuple):
    """The figures of a page: the number of its sentences, their mean and largest number of words, its reading ease."""

    sentences: int
    mean: float
    longest: int
    ease: float


def prose_of(text: str) -> list[str]:
    """Return the sentences of a page that have more than two words, without code, tables, headings and comments."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?:\|.*|#.*|:{3,}.*|    .*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Name", text)  # a name is one word, however long
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*:]|\d+\.) )", text)
    plain = (" ".join(re.sub(r"^\s*(?:[-*:]|\d+\.) ", "", part).replace("**", "").split()) for part in parts)
    sentences = (sentence for part in plain for sentence in re.split(r"(?<=[.?!:])\s+(?=[A-Z\"(*])", part))
    return [sentence for sentence in sentences if len(sentence.split()) > 2]


def measure(text: str) -> Figures:
    """Return the figures of a page, given its text."""
    sentences = prose_of(text)
    if not sentences:
        return Figures(0, 0, 0, 100)
    lengths = [len(sentence.split()) for sentence in sentences]
    words = [word for sentence in sentences for word in re.findall(r"[A-Za-z']+", sentence)]
    syllables = sum(len(HYPHENS.positions(word)) + 1 for word in words)
    mean = sum(lengths) / len(lengths)
    # The formula of R. Flesch, "A new readability yardstick" (1948).
    return Figures(len(sentences), mean, max(lengths), 206.835 - 1.015 * mean - 84.6 * syllables / len(words))


def main(paths: list[str]) -> int:
    """Print the table, and what exceeds a limit; return 1 if anything does, else 0."""
    pages = [Path(path) for path in paths] or [
        ROOT / "README.md",
        *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts),
    ]
    above = []
    print(f"{'page':45}{'sentences':>10}{'words each':>12}{'longest':>9}{'ease':>7}")
    for path in pages:
        if path.stem in GENERATED:
            continue
        text = path.read_text(encoding="utf-8")
        figures = measure(text)
        name = path.resolve().relative_to(ROOT).as_posix()
        print(f"{name:45}{figures.sentences:>10}{figures.mean:>12.1f}{figures.longest:>9}{figures.ease:>7.0f}")
        if figures.mean > MEAN_WORDS:
            above.append(f"{name}: expected at most {MEAN_WORDS} words a sentence on average, found {figures.mean:.1f}")
        above += [
            f"{name}: expected at most {MOST_WORDS} words in a sentence, found {len(sentence.split())}: {sentence}"
            for sentence in prose_of(text)
            if len(sentence.split()) > MOST_WORDS
        ]
    print("\n".join(above))
    return bool(above)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
