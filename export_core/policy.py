"""What does a project ask for? The file export_compat.yaml."""

from __future__ import annotations

import datetime
import difflib
import re
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from export_core.errors import ExportCompatError
from export_core.releases import Calendar, JaxlibRelease, JaxRelease, Windows, load_calendar

FILE = "export_compat.yaml"
LONGEST_EXPIRY = datetime.timedelta(days=90)


class _Loader(yaml.SafeLoader):
    """YAML as people write numbers: PyYAML takes 1e-4 for text, since YAML 1.1 wants a dot."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


class PolicyError(ExportCompatError):
    """A policy file that does not say what it must."""


class WindowDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths of the two windows in days. JAX promises 180 backward and 21 forward."""

    backward: int = 180
    forward: int = 21


class ExtraReleases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Releases that the shipped calendar does not have yet, such as a nightly."""

    jaxlib: dict[str, JaxlibRelease] = {}
    jax: dict[str, JaxRelease] = {}


class KnownFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Promised cells that must fail just so. `cases`, `writers` and `readers` take globs; versions are of jaxlib.

    It ends on the day `expires`, at most 90 days after `added`, unless it is permanent and somebody approved that.
    """

    cases: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    verdict: Literal["numerics", "refused", "error", "crash", "timeout"]
    stage: Literal["read", "audit", "deserialize", "module", "lower", "compile", "run", "compare"]
    message: str
    reason: str
    owner: str
    issue: str
    added: datetime.date
    platforms: tuple[str, ...] = ("cpu",)
    expires: datetime.date | None = None
    permanent: bool = False
    approver: str | None = None


class CustomCallChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A custom-call target that changes: the lowering calls `new` in the place of `old`; None where nothing takes its place.

    `introduced` (D) is the build date of the first jaxlib that can run the new lowering, `release` (RELEASE) that of the first
    one published with it, None while nobody knows. Source: the jax.export documentation, "Ensuring forward and backward
    compatibility".
    """

    old: str
    new: str | None
    introduced: datetime.date
    release: datetime.date | None
    reason: str
    owner: str
    issue: str


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a project can settle once. Every key has a default; command line and marker come before it."""

    goldens: str = "golden"
    windows: WindowDays = WindowDays()
    readers: str = "window"
    platforms: tuple[str, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    allow: dict[str, str] = {}
    releases: ExtraReleases = ExtraReleases()
    known_failures: tuple[KnownFailure, ...] = ()
    custom_call_changes: tuple[CustomCallChange, ...] = ()
    backfill_install: tuple[str, ...] = ()

    def calendar(self) -> Calendar:
        """The shipped calendar with this project's own releases."""
        return load_calendar().extended(self.releases.jaxlib, self.releases.jax)

    def window_lengths(self) -> Windows:
        """The windows as the judge takes them."""
        return Windows(self.windows.backward, self.windows.forward)


def find_policy(folder: Path, named: str | None = None) -> Policy:
    """The policy of a project: the named file, else export_compat.yaml in `folder`, else the defaults."""
    if named is not None:
        return load_policy(Path(named))
    path = folder / FILE
    return load_policy(path) if path.exists() else Policy()


def load_policy(path: Path) -> Policy:
    """Read a policy file. Raises `PolicyError` naming the file, the key and what was expected."""
    try:
        # A file with nothing but comments is None to YAML. The loader is a SafeLoader: it makes plain data only.
        policy = msgspec.convert(yaml.load(path.read_bytes(), _Loader), Policy | None) or Policy()
    except FileNotFoundError:
        raise PolicyError(f"{path}: expected a policy file, found no such file.") from None
    except OSError as error:
        raise PolicyError(f"{path}: cannot read this policy file: {error.strerror}.") from None
    except (msgspec.MsgspecError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())  # what YAML says fills several lines
        raise PolicyError(f"{path}: {said}.{_nearest_key(said)}") from None
    if policy.windows.backward < 0 or policy.windows.forward < 0:
        raise PolicyError(f"{path}: windows: expected days of 0 or more, found {policy.windows}.")
    for number, entry in enumerate(policy.known_failures):
        _check_known_failure(f"{path}: known_failures[{number}]", entry)
    for number, change in enumerate(policy.custom_call_changes):
        _check_custom_call_change(f"{path}: custom_call_changes[{number}]", change, policy.custom_call_changes[:number])
    return policy


def _check_known_failure(where: str, entry: KnownFailure) -> None:
    _check_text(where, entry, "reason", "owner", "issue")
    if entry.permanent:
        if not entry.approver:
            raise PolicyError(f"{where}: permanent: true needs an approver.")
    elif entry.expires is None:
        raise PolicyError(
            f"{where}: expected expires (at most 90 days after added), or permanent: true with an approver."
        )
    elif entry.expires > entry.added + LONGEST_EXPIRY:
        raise PolicyError(
            f"{where}: expires {entry.expires} is {(entry.expires - entry.added).days} days after added; at most 90 are allowed."
        )


def _check_custom_call_change(where: str, change: CustomCallChange, before: tuple[CustomCallChange, ...]) -> None:
    _check_text(where, change, "old", "reason", "owner", "issue")
    if change.new is not None:
        _check_text(where, change, "new")
    if change.new == change.old:
        raise PolicyError(
            f"{where}: new: expected a name other than old, found {change.new!r} twice. A target whose meaning changes gets a new "
            "name: artifacts that are out there call it by the old one."
        )
    if change.release is not None and change.release < change.introduced:
        raise PolicyError(
            f"{where}: release: expected {change.introduced} (introduced) or later, or null while it is not known, found {change.release}."
        )
    for number, other in enumerate(before):
        if other.old == change.old:
            raise PolicyError(f"{where}: old: {change.old!r} already changes in custom_call_changes[{number}].")


def _check_text(where: str, entry: msgspec.Struct, *names: str) -> None:
    for name in names:
        if not getattr(entry, name).strip():
            raise PolicyError(f"{where}: {name}: expected text, found none.")


def _nearest_key(message: str) -> str:
    unknown = re.search(r"unknown field `([^`]*)`", message)
    if not unknown:
        return ""
    kinds = (Policy, WindowDays, ExtraReleases, KnownFailure, CustomCallChange, JaxlibRelease, JaxRelease)
    keys = sorted({name for kind in kinds for name in kind.__struct_fields__})
    near = difflib.get_close_matches(unknown.group(1), keys, n=1)
    return f" Did you mean `{near[0]}`?" if near else f" Known keys: {', '.join(Policy.__struct_fields__)}."
