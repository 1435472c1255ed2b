"""How large goldens are on disk, by the name of the file: which files to leave out, or to give to Git LFS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from export_core.base.escaping import printable
from export_core.base.layout import aligned
from export_core.goldens import Golden

MOST = 8
"""Names that have a line of their own; the others, which are smaller, share one."""


def size_lines(goldens: Iterable[Golden]) -> Iterator[str]:
    """A line for each name, the largest first, and one for all files in the folders of these goldens."""
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for golden in goldens:
        for path in golden.folder.iterdir():
            sizes[path.name] += path.lstat().st_size
            counts[path.name] += 1
    total = sizes.total()
    rows = [(printable(name), counts[name], size) for name, size in sizes.most_common(MOST)]
    if len(sizes) > MOST:
        others = sizes.most_common()[MOST:]
        rows.append((f"{len(others)} other names", sum(counts[name] for name, _ in others), sum(dict(others).values())))
    rows.append(("all", counts.total(), total))
    texts = [(name, f"{count:,}", f"{size / 1e3:,.1f}", f"{size / (total or 1):.0%}") for name, count, size in rows]
    yield from aligned([("file", "files", "kB", "share"), *texts], right=(1, 2, 3), least=(0, 7, 9))
