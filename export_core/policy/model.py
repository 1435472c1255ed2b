"""The keys of a policy, each with its meaning. schema/policy.schema.json is made from them, for editors."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from export_core.base.text import without_credentials
from export_core.base.tolerances import Tolerance
from export_core.policy import entries
from export_core.policy.entries import DeploymentTarget
from export_core.policy.feature_keys import Key, feature_keys, with_feature_keys
from export_core.releases import Calendar, Windows, load_calendar
from export_core.releases.names import title_of
from export_core.releases.project_releases import project_calendar
from export_core.releases.runtimes import built_on

SCHEMA_FILE = Path(__file__).parent / "data" / "policy.schema.json"

PlatformMode = Literal["auto", "run", "compile"]

LOCATED = ("known_failures", "quirks", "numbers", "deployed", *(key.name for key in feature_keys()))
"""Tables whose entries know their line in the file: a stale entry is reported with its line."""

REPLAYED = (
    *("tolerances", "numbers", "allow", "quirks"),
    *("reader_packages", "reader_packages_from_source", "environment"),
)
"""Keys that decide how cells run and are compared: judging again does neither."""

INSTALLED = ("reader_packages", "backfill_install")
"""Keys whose texts are requirements as pip takes them."""

VariableName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)",
        examples=["MY_LIBRARY"],
        description="A name has letters, digits and `_`, and begins with no digit.",
    ),
]

# A file may have these values in several forms. `__post_init__` converts them to the form that the types for mypy name.
if TYPE_CHECKING:
    Platforms = Mapping[str, PlatformMode] | None
    Readers = str
else:
    Platforms = dict[str, PlatformMode] | tuple[str, ...] | None
    Readers = str | tuple[str, ...]


@with_feature_keys
class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy of a project. Every key has a default; the command line and a test's marker override a key."""

    goldens: str = "golden"  # Folder of goldens, relative to where the command runs.
    windows: entries.WindowDays = entries.WindowDays()  # What is promised, in days between two jaxlib build dates.
    readers: Readers = "window"
    """The releases in which a matrix replays goldens, as a list or separated by commas: jaxlib versions, `all`,
    `newest`, `deployed` or `window`. `window` is every release with a promised cell here, the newest, the one just
    before each writer, and those of `deployed`."""
    platforms: Platforms = None
    """Platforms to export for and to replay on: a list, or each with its mode: run, compile, or auto (run where this
    machine can)."""
    deployed: tuple[DeploymentTarget, ...] = ()
    """Deployment targets: where artifacts have to run, even outside the window. A cell that fails there outside its
    window is `owed`, which fails a run."""
    required: entries.Required = entries.Required()  # What a run must cover to be complete.
    calendar_days: Annotated[int, Meta(ge=0)] = 60
    """Headlines say how old the calendar is, once its newest release is older than these days."""
    unpromised: entries.Text | None = None
    """The reason for a run in which no cell is promised or of a deployment target, such as one of old goldens. Without
    a reason, it is incomplete."""
    fail_on: tuple[Literal["outside", "bonus-lost"], ...] = ()
    """What fails a run beside a broken promise. `outside`: a cell outside its window that ends in an error, a crash or
    a timeout. `bonus-lost`: with a baseline, a cell that was a bonus there and fails now."""
    rtol: entries.Amount = None
    """Relative tolerance of new goldens, and of marked tests in pytest: a number, or by dtype."""
    atol: entries.Amount = None
    """Absolute tolerance of new goldens, and of marked tests in pytest: a number, or by dtype."""
    tolerances: dict[str, dict[str, Tolerance]] = {}
    """By platform, then dtype: tolerances that a platform needs, also for existing goldens."""
    numbers: tuple[entries.NumbersRule, ...] = ()
    """How goldens are compared, in place of what they recorded. The first entry that matches counts."""
    changed_module: Literal["fail", "warn"] = "fail"
    """Of a marked test that exports another module than its golden's, with equal outputs: it fails, or the summary of
    the run says so."""
    changed_inputs: Literal["fail", "warn"] = "warn"
    """Of a marked test whose arguments are not the inputs of its golden: it fails, or the summary says so."""
    unused_goldens: Literal["fail", "warn"] = "warn"
    """Of a run of all tests with goldens that none exports any more: it fails, or lists them."""
    allow: dict[str, entries.Text] = {}
    """What the audit accepts, each with its reason: custom-call targets that are not on JAX's stable list, and parts of
    a module that it does not know."""
    quirks: tuple[entries.Quirk, ...] = ()  # Relaxations, each for one golden.
    releases: entries.ExtraReleases = entries.ExtraReleases()
    """Releases that the shipped calendar lacks: a nightly, or one younger than this package."""
    known_failures: tuple[entries.KnownFailure, ...] = ()
    """Cells that are broken or owed, and that must fail in exactly this way."""
    known_issues: str | None = None
    """A file of known upstream issues, in addition to the shipped table: `jaxexport policy show --known`."""
    custom_call_changes: tuple[entries.CustomCallChange, ...] = ()  # Custom-call targets that are replaced or removed.
    retention: entries.Retention = entries.Retention()
    """Goldens that `jaxexport goldens prune` does not delete, in addition to those inside a window."""
    reader_packages: tuple[str, ...] = ()
    """pip requirements that are installed for every reader: what registered modules import beside jax and numpy."""
    reader_packages_from_source: tuple[str, ...] = ()
    """Names of packages that are built from source, which runs their code; others must be wheels."""
    environment: tuple[VariableName, ...] = ()
    """Names of environment variables that cells get in addition to what Python, jax and its devices need. The code in a
    golden can read them; cached outcomes and stored runs count only with the same values."""
    backfill_install: tuple[str, ...] = ()
    """What `jaxexport goldens backfill` installs for the tests, as pip requirements; if empty, the project in the
    working folder."""

    def __post_init__(self) -> None:
        """Convert a list of readers to a comma-separated text, and a list of platforms to a table with mode auto."""
        readers: object = self.readers
        platforms: object = self.platforms
        # force_setattr: the struct is frozen, and nobody else has it yet.
        if isinstance(readers, tuple):
            msgspec.structs.force_setattr(self, "readers", ",".join(readers))
        if isinstance(platforms, tuple):
            msgspec.structs.force_setattr(self, "platforms", dict.fromkeys(platforms, "auto"))

    @property
    def set_keys(self) -> tuple[str, ...]:
        """The keys whose values are not empty, including defaults."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))

    def spelled_platforms(self) -> tuple[str, ...]:
        """Return the platforms to replay on as --platforms takes them, such as ``cpu`` or ``cuda:run``."""
        wanted = self.platforms or {"cpu": "auto"}
        return tuple(name if mode == "auto" else f"{name}:{mode}" for name, mode in wanted.items())

    def targets_on(self, day: datetime.date) -> tuple[DeploymentTarget, ...]:
        """Return the deployment targets in force on a day whose release was built by then."""
        targets = [target for target in self.deployed if target.in_force(day)]
        calendar = self.calendar().as_of(day) if targets else None
        return tuple(target for target in targets if calendar and built_on(target.release, calendar))

    def calendar(self) -> Calendar:
        """Return the calendar of this package, extended by the releases that the policy adds.

        Raises `ReleaseError` for a release whose build date cannot be right.
        """
        # Here too, and not only where a file is read: the policy in summary.json has not been checked.
        calendar = project_calendar(load_calendar(), self.releases.jaxlib, self.releases.jax)
        return replace(calendar, runtimes=self.releases.runtimes)

    def window_lengths(self) -> Windows:
        """Return the lengths of the backward and the forward window in days."""
        return Windows(self.windows.backward, self.windows.forward)

    def replays_otherwise(self, earlier: Policy) -> str:
        """Return the first key changed since an earlier policy that decides how cells run or are compared; else "".

        Results under the earlier value of this key are not evidence under this policy.
        """
        # Without locations: a quirk that only moved to another line is the same quirk.
        now, then = self.replayed(), earlier.replayed()
        return next((name for name in REPLAYED if now[name] != then[name]), "")

    def replayed(self) -> dict[str, Any]:
        """Return the values of all keys that decide how cells run and are compared, without locations and passwords."""
        plain = self.without_locations().without_passwords()
        return {name: getattr(plain, name) for name in REPLAYED}

    def without_passwords(self) -> Policy:
        """Return a copy of the policy without the passwords in URLs of indexes and packages."""
        shown = {name: tuple(map(without_credentials, getattr(self, name))) for name in INSTALLED}
        return msgspec.structs.replace(self, **shown)

    def without_locations(self) -> Policy:
        """Return a copy of the policy whose entries have no location in a file, for comparing what policies mean."""
        return self.located(lambda _: "")

    def located(self, location: Callable[[Key], str]) -> Policy:
        """Return a copy of the policy in which `location` has set the location of each entry, from the entry's key."""
        tables = {
            table: tuple(
                msgspec.structs.replace(entry, location=location((table, number)))
                for number, entry in enumerate(getattr(self, table))
            )
            for table in LOCATED
        }
        return msgspec.structs.replace(self, **tables)


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file without the meanings of keys, which `policy_schema_file` includes."""
    schema = msgspec.json.schema(Policy)
    for table in schema["$defs"].values():
        # The location of an entry is found when a policy is read, and must not be in a file: see `read_policy`.
        table["properties"].pop("place", None)
    return schema


def policy_schema_file() -> bytes:
    """Return the content of ``policy.schema.json``, by which editors check keys; `tools.schemas` writes that file."""
    return SCHEMA_FILE.read_bytes()


def left_out_targets(policy: Policy, day: datetime.date) -> dict[str, str]:
    """Return the deployment targets that have to run nothing on a day, with the reason: by `since`, `until` or release.

    The text follows the target's name, as that of `DeploymentTarget.out_of_force` does.
    """
    here = policy.targets_on(day)
    others = [target for target in policy.deployed if target not in here]
    return {each.name: each.out_of_force(day) or f"{title_of(each.release)} is not built yet" for each in others}


def left_out_sentences(policy: Policy, day: datetime.date) -> list[str]:
    """Return a sentence for each deployment target of `left_out_targets`."""
    return [f"Deployment target {name} is left out: {why}." for name, why in left_out_targets(policy, day).items()]
