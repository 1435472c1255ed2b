"""The options of a run, each declared once: a field with its flag, its help, and how a printed command repeats it.

The help of a field says what it means. If its default comes from the policy or the machine, its default here is None.

From these fields come the options of the commands (cli/click_options.py), what they read (`read_options`), and the
options of a printed command (`option_words`).
"""

import datetime
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Self, TypeVar, get_args, get_origin

from export_core.base.errors import ExportCompatError
from export_core.base.text import without_credentials
from export_core.releases.windows import parse_day

RESULTS = Path(".jaxexport")  # The folder of results unless another is named.
REPRODUCED = "reproduced"  # The folder, inside `RESULTS`, for the results of a command that runs one cell again.
LOCAL = "local"  # The executor that runs cells on this machine.
GIB = 1 << 30
WINDOW = "window"  # The readers of a run for which neither a selection nor a policy names others.
GROUPS = (WINDOW, "all")  # The words that name a group of readers, which depends on the goldens or on the calendar.
PROMISED = "promised"
BACKWARD = "backward"
COMPARISONS = frozenset("<>=!~")  # The characters of the comparisons in a range of releases, such as >=0.11.
_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")
_KEY = "option"
_Options = TypeVar("_Options")


class OptionError(ExportCompatError):
    """An error for a value that an option cannot have."""


@dataclass(frozen=True)
class Shard:
    """One of several parts of a plan, each of which can run on a machine of its own."""

    index: int  # The number of the shard, from 1.
    count: int  # How many shards the plan has.

    def __str__(self) -> str:
        """The text of the option --shard, such as ``3/16``."""
        return f"{self.index}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Return the shard that is meant by a text such as ``3/16``; raise `OptionError` for any other text."""
    match = _SHARD.fullmatch(text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise OptionError(f"--shard: expected I/N with I from 1 to N, such as 3/16, found {text!r}.")
    return Shard(int(match[1]), int(match[2]))


def comma_separated(text: str | None) -> tuple[str, ...]:
    """Return the parts of a comma-separated list.

    A range with commas, such as ``tensorflow>=2.19,<2.21`` or ``>=0.11,<0.12``, is a single part.
    """
    parts: list[str] = []
    for part in filter(None, map(str.strip, (text or "").split(","))):
        if part[0] in COMPARISONS and parts and COMPARISONS.intersection(parts[-1].partition("[")[0]):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return tuple(parts)


@dataclass(frozen=True)
class Option:
    """The command-line option of a field: its name, its help, its limits, and how its value is read and written."""

    flag: str  # The name on the command line; for yes and no two names with a slash between them.
    metavar: str | None  # What help calls the value; None for an option without a value.
    help: str  # What the option means.
    kind: type | tuple[str, ...] | None = None  # The type on the command line, or the words to choose from.
    least: float | None = None  # The least value of a number.
    most: float | None = None  # The greatest value of a number.
    above_zero: float | None = None  # The least value of a number but 0, where 0 means no limit.
    unit: int = 1  # How much of the field is 1 on the command line.
    read: Callable[[Any], Any] | None = None  # Makes the value of the field from the value on the command line.
    write: Callable[[Any], str] = str  # Makes the text of a value, or of each value of an option with several.
    multiple: bool = False  # Whether it may be given several times, as a tuple without `read`.
    of_policy: bool = False  # Whether the policy may set the default.
    repeated: bool = False  # Whether every printed command about the same goldens repeats it.

    def allows(self, number: float) -> bool:
        """Return whether a number on the command line is within the limits of the option."""
        least = self.above_zero if number and self.above_zero else self.least
        return math.isfinite(number) and (least or 0) <= number <= (math.inf if self.most is None else self.most)


def _option(default: Any, usage: str, text: str, **more: Any) -> Any:
    """Return a dataclass field that declares a command-line option, with this default.

    `usage` is its form in help, such as ``--goldens DIR``; `text` is its help; `more` are other fields of `Option`.
    """
    flag, _, metavar = usage.partition(" ")
    multiple = default == () and "read" not in more
    return field(default=default, metadata={_KEY: Option(flag, metavar or None, text, multiple=multiple, **more)})


@dataclass(frozen=True)
class CheckedOptions:
    """A base class of options that programs make too: it checks the type and the limits of each value."""

    def __post_init__(self) -> None:
        """Convert texts to paths and lists to tuples; raise `OptionError` for a value that an option cannot have."""
        for declaration in fields(self):
            name, kind, given = declaration.name, declaration.type, getattr(self, declaration.name)
            value = given
            if isinstance(given, str | os.PathLike):
                value = Path(given) if Path in get_args(kind) else os.fspath(given)
            elif isinstance(given, list | tuple) and get_origin(kind) is tuple:
                value = tuple(os.fspath(part) if isinstance(part, os.PathLike) else part for part in given)
            if expected := _expected(declaration.metadata[_KEY], kind, value):
                raise OptionError(f"{type(self).__name__}: {name}={given!r}: expected {expected}.")
            object.__setattr__(self, name, value)


def _expected(option: Option, kind: Any, value: Any) -> str:
    """Return what values an option of type `kind` can have, if `value` is not one of them; else ""."""
    if get_origin(kind) is tuple:
        return "" if isinstance(value, tuple) and all(isinstance(part, str) for part in value) else "a tuple of texts"
    kinds = get_args(kind) or (kind,)
    accepted = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in kinds):
        if kind is str and isinstance(value, list | tuple):
            return f"one text, such as {','.join(map(str, value))!r}"
        return " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
    if isinstance(option.kind, tuple):
        return "" if not value or value in option.kind else " or ".join(option.kind)
    if isinstance(value, bool) or not isinstance(value, int | float) or option.allows(float(value) / option.unit):
        return ""
    if option.unit == GIB:
        return f"0 for no limit, or {option.above_zero or 0:g} GiB or more, in bytes: 8 GiB are 8 * 2**30"
    return f"{option.least:g} or more"


@dataclass(frozen=True)
class ProjectOptions:
    """The options for a command's goldens, policy and day."""

    goldens: Path | None = _option(
        None, "--goldens DIR", "Folder of goldens. [default: the policy's, else golden]", repeated=True
    )
    policy_file: str | None = _option(
        None,
        "--policy FILE",
        "Policy file. [default: export_compat.yaml or [tool.jaxexport] in pyproject.toml, where there is one]",
        kind=Path,
        repeated=True,
    )
    as_of: datetime.date | None = _option(
        None,
        "--as-of DATE",
        "Judge as of this day, such as 2026-10-25: later releases are ignored. [default: today]",
        read=parse_day,
        repeated=True,
    )


@dataclass(frozen=True)
class Selection(CheckedOptions):
    """The options that select the cells of a run: goldens, readers and platforms. An empty one has its default."""

    readers: str = _option(
        "",
        "--readers READER,…",
        "window, all, newest, deployed (the policy's deployment targets), jaxlib releases (0.9.2, '>=0.11'), one with "
        "its jax "
        "(0.11.2-jax0.12.0.1), a jaxlib wheel file, or releases of another runtime (tensorflow==2.21.0, 'iree>=3.9', "
        "litert for its newest). [default: the policy's, else window, with deployed]",
        of_policy=True,
    )
    platforms: tuple[str, ...] = _option(
        (),
        "--platforms P,P…",
        "cpu, cuda, rocm, tpu: run where this machine has the hardware, else compile only; cuda:run or cuda:compile "
        "for one of the two. [default: the policy's, else cpu]",
        read=comma_separated,
        write=",".join,
        of_policy=True,
    )
    cases: tuple[str, ...] = _option((), "--cases CASE", "Only these cases: ids or globs; may be given several times.")
    writers: tuple[str, ...] = _option(
        (),
        "--writers V,V…",
        "Only goldens by these jaxlib releases. [default: all]",
        read=comma_separated,
        write=",".join,
    )
    touching: str = _option(
        "", "--touching READER", "Only cells whose writer or reader is this release, such as a release candidate."
    )
    wheels: tuple[str, ...] = _option(
        (),
        "--wheels DIR",
        "A folder with unpublished wheels of jax and jaxlib.",
        kind=Path,
        repeated=True,
    )
    indexes: tuple[str, ...] = _option(
        (),
        "--index URL",
        "A package index with nightlies, searched before the default one.",
        write=without_credentials,
        repeated=True,
    )
    targets: tuple[str, ...] = _option(
        (),
        "--target P=DEVICE",
        "Another device to compile for: tpu=v6e, cuda=a100 or cuda=cuda13/b200; may be given several times. "
        "[default: v5e, cuda12/h100]",
        repeated=True,
    )
    only: str = _option(
        "",
        "--only",
        "promised: only cells inside their window, and those of the policy's deployment targets (`deployed`). "
        "backward: these, and all whose reader is younger than the writer. [default: all selected cells]",
        kind=(PROMISED, BACKWARD),
    )

    @property
    def named(self) -> tuple[str, ...]:
        """The parts of the comma-separated `readers`; only `window` if it is empty."""
        return comma_separated(self.readers or WINDOW)

    def or_else(self, readers: str = WINDOW, platforms: tuple[str, ...] = ("cpu",)) -> Self:
        """Return the selection, with these readers and platforms if it has none."""
        return replace(self, readers=self.readers or readers, platforms=self.platforms or platforms)

    @property
    def has_group(self) -> bool:
        """Whether `window` or `all` is among the readers."""
        return any(part in GROUPS for part in self.named)

    @property
    def has_every_golden(self) -> bool:
        """Whether no option of the selection excludes goldens or cells."""
        return not (self.cases or self.writers or self.touching or self.only)

    def as_recorded(self, *, whole: bool) -> dict[str, Any]:
        """Return the selection in the form of plan.json and summary.json, without users and passwords in URLs.

        `whole` is the result of `is_whole` for the selection.
        """
        shown = {
            name: value
            for name, value in asdict(self.or_else()).items()
            if value or name not in ("touching", "wheels", "indexes", "targets", "only")
        }
        if self.indexes:
            shown["indexes"] = tuple(without_credentials(url) for url in self.indexes)
        # As these files are read again: JSON has no tuples.
        recorded = {name: [*value] if isinstance(value, tuple) else value for name, value in shown.items()}
        return {**recorded, "whole": whole}


@dataclass(frozen=True)
class CellOptions:
    """The options that are passed to workers, since they can change what happens in a cell."""

    timeout: float = _option(
        120.0,
        "--timeout SECONDS",
        "Time limit of one cell, in seconds. A worker has 120 s more to start.",
        least=0.1,
        write="{:g}".format,
        repeated=True,
    )
    memory: int = _option(
        8 * GIB,
        "--memory GIB",
        "Memory limit of one cell, in GiB; 0 is no limit.",
        kind=float,
        least=0,
        most=2**20,
        above_zero=1 / 16,  # no reader starts with less: 8 in a program is 8 GiB where bytes are meant
        unit=GIB,
        read=lambda gib: int(gib * GIB),
        write=lambda size: f"{size / GIB:g}",
        repeated=True,
    )
    """Bytes for one cell."""
    repeat: int = _option(
        0,
        "--repeat N",
        "Make the call of each cell N more times, and record the seconds of each.",
        least=0,
        repeated=True,
    )


@dataclass(frozen=True)
class RunOptions(CellOptions, ProjectOptions, CheckedOptions):
    """The options of `jaxexport matrix`, except those that select cells."""

    shard: Shard | None = _option(
        None, "--shard I/N", "The I-th of N parts of the plan; `jaxexport judge` joins their results.", read=parse_shard
    )
    results: Path | None = _option(RESULTS, "--results DIR", "Folder for results.jsonl and summary.json.")
    """The folder for results.jsonl and summary.json; None writes nothing."""
    executor: str = _option(
        LOCAL,
        "--executor local|dask:ADDRESS",
        "Where cells run: here, or on the Dask cluster of a scheduler such as dask:tcp://127.0.0.1:8786.",
        write=without_credentials,
        repeated=True,
    )
    jobs: int | None = _option(
        None,
        "--jobs N",
        "Number of cells at a time; on a cluster, in each task. [default: the number of cores; 1 on a cluster]",
        least=1,
    )
    device_jobs: int = _option(1, "--device-jobs N", "Number of cells at a time on an accelerator.", least=1)
    resume: bool = _option(
        False,
        "--resume",
        "Continue the last run in --results, which was interrupted, killed or incomplete. --timeout and --memory must "
        "be the same; --jobs may differ.",
    )
    cache: bool = _option(
        True, "--cache/--no-cache", "Reuse the outcomes of earlier runs for cells whose content has not changed."
    )
    dump_ir: Path | None = _option(
        None, "--dump-ir DIR", "Write every module as text into this folder, as exported and as compiled, by case."
    )
    convert: bool = _option(
        False,
        "--convert",
        "Also say whether `jaxexport convert` fixes each cell that fails on a CPU: its artifact is converted for the "
        "reader, by the smallest change that works, and replayed there. The converted artifact is not stored.",
    )


def options_of(kind: type) -> dict[str, Option]:
    """Return the options that a class declares or inherits, by the name of the field.

    If an option has no `kind` or `read`, these follow from the type of the field.
    """
    declared = {}
    for declaration in fields(kind):
        option: Option = declaration.metadata[_KEY]
        of_field = (*get_args(declaration.type), declaration.type)[0]  # `Path` of `Path | None`
        kind_there = option.kind or (of_field if of_field in (int, float, bool, Path) else str)
        read = option.read or (Path if of_field is Path else None)
        declared[declaration.name] = replace(option, kind=kind_there, read=read)
    return declared


OPTIONS = {**options_of(ProjectOptions), **options_of(Selection), **options_of(RunOptions)}
"""Every option by the name of its field, in the order in which help lists them and commands repeat them."""
ONE_CELL = tuple(name for name, option in OPTIONS.items() if option.repeated and name not in ("executor", "repeat"))
"""The options that the commands about one cell take too: they run it here, and time nothing."""
ONE_OF_SEVERAL = {
    "--cases": "--case",
    "--writers": "--writer",
    "--readers": "--reader",
    "--platforms": "--platform",
    "--targets": "--target",
    "--indexes": "--index",
    "--baselines": "--baseline",
}
"""Options that choose several cases, writers and so on, with the option that chooses one. A command has one of the two
options and accepts both names."""
DEFAULTS = {declaration.name: declaration.default for kind in (RunOptions, Selection) for declaration in fields(kind)}
"""The default of each field, by its name."""


def _names(kind: type) -> list[str]:
    return [declaration.name for declaration in fields(kind)]


def of_cell(options: CellOptions) -> dict[str, Any]:
    """Return the options that are passed to workers, by name."""
    return {name: getattr(options, name) for name in _names(CellOptions)}


@dataclass(frozen=True)
class CellLimits(CellOptions):
    """The limits of each cell, and the number of cells that run at once. A limit of 0 is no limit."""

    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)  # How many cells run at once.
    device_jobs: int = 1  # How many of them may be on an accelerator, whose memory two processes do not share.

    @classmethod
    def of(cls, options: RunOptions) -> Self:
        """Return the limits that the options of a run ask for."""
        cores = 1 if options.executor != LOCAL else os.cpu_count() or 1
        return cls(**of_cell(options), jobs=options.jobs or cores, device_jobs=options.device_jobs)


def read_options(kind: type[_Options], values: Mapping[str, Any]) -> _Options:
    """Return an object of options from command-line values; an option that is missing or None has its default."""
    given = {name: values[name] for name in _names(kind) if values.get(name) is not None}
    for name, value in list(given.items()):
        option = OPTIONS[name]
        if not value and DEFAULTS[name] is None:  # an empty text is None: --goldens "" is the folder of the policy
            del given[name]
        elif option.multiple:
            given[name] = tuple(value)
        else:
            value = option.kind(value) if option.kind in (int, float) else value
            given[name] = option.read(value) if option.read else value
    return kind(**given)


def option_words(*objects: object, plan: bool = False) -> list[str]:
    """Return the words of the options with which another command uses the same goldens and runs cells in the same way.

    `objects` have the values of the options. With `plan`, the options that select cells are added, so that the command
    makes the same plan.
    """
    words = []
    for name, option in OPTIONS.items():
        if option.repeated or (plan and name in _names(Selection)):
            for value in (getattr(options, name) for options in objects if hasattr(options, name)):
                # One whose default is the policy's is always said: the policy may have another one there.
                if value != DEFAULTS[name] or option.of_policy:
                    words += _option_words(option, value)
    return words


def _option_words(option: Option, value: Any) -> list[str]:
    """Return the words of a command line that set an option to a value, or to each of several values."""
    texts = map(option.write, value) if option.multiple else (option.write(value),)
    return [word for text in texts for word in (option.flag, text)]


def repeating_words(*objects: object) -> list[str]:
    """Return the words of all options with which the same command makes the same run again.

    Options with default values are left out, and so are --results, --shard and --resume.
    """
    words = []
    for name, option in OPTIONS.items():
        if name not in ("results", "shard", "resume"):
            for value in (getattr(options, name) for options in objects if hasattr(options, name)):
                if isinstance(value, bool):
                    words += [option.flag.split("/")[not value]] if value != DEFAULTS[name] else []
                elif value != DEFAULTS[name] or option.of_policy:
                    words += _option_words(option, value)
    return words


def reproduce_options(selection: Selection, options: RunOptions) -> list[str]:
    """Return the words of the options that are the same in all commands that reproduce a cell of a run."""
    results = RESULTS / REPRODUCED  # of their own, since a run replaces what is in its folder; but for a reproduction
    # An outcome from the cache would reproduce nothing.
    return [*option_words(selection, options), "--no-cache", "--results", str(results)]
