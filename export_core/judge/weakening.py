"""The table of every field of golden.yaml, a policy and the marker: which of them make a verdict say less.

Each is in `WEAKENS`, with how reports tell it, or in `DOES_NOT`, with the reason. A test fails for a field in neither.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from export_core.base.tolerances import Tolerance
from export_core.goldens import Check, Comparison, FactorGroup, Golden, Manifest, Options, Origin, Writer
from export_core.goldens.manifest import (
    ConvertedFrom,
    Flattened,
    JaxprSummary,
    NoiseRecord,
    Signature,
    UndecidedOutput,
)
from export_core.judge import accepted
from export_core.judge.accepted import Accepted, Lister, merge_accepted
from export_core.policy import Policy
from export_core.policy.entries import (
    CustomCallChange,
    DeploymentTarget,
    ExtraReleases,
    KnownFailure,
    NumbersRule,
    Pin,
    Quirk,
    Required,
    Retention,
    WindowDays,
)
from export_core.releases import JaxlibRelease, JaxRelease
from export_core.releases.calendar import RuntimeRelease


def accepted_in(goldens: Iterable[Golden], policy: Policy) -> list[Accepted]:
    """Return a sorted entry for everything that makes the checks of these goldens less strict.

    It is accepted by their golden.yaml files or by the policy.

    Args:
        goldens: All goldens of a run, with the comparisons of the policy applied. Those of the same case are compared
            with each other.
        policy: The policy of the run.
    """
    goldens = list(goldens)
    tellers = dict.fromkeys(how for how in WEAKENS.values() if callable(how))
    return merge_accepted(tell(goldens, policy) for tell in tellers)


class Elsewhere(NamedTuple):
    """The mark of a field that makes checks less strict, and that a report shows at `place`, not among the accepted."""

    place: str  # A field of the summary, a judgement, or the summary of pytest.


class AsField(NamedTuple):
    """The mark of a field that makes checks less strict, but whose value a report shows from another field."""

    kind: type
    name: str


Field = tuple[type | str, str]  # A type of golden.yaml or of a policy, or `MARKER`, and the name of a field or keyword.
MARKER = "the marker"


def _spread(*groups: tuple[Any, Sequence[tuple[Any, str]]]) -> dict[Field, Any]:
    """Return a mapping from each field to the entry that is given for the group of fields it is in.

    Raises `ValueError` if a field is in two groups.
    """
    fields: dict[Field, Any] = {}
    for entry, kinds in groups:
        for kind, names in kinds:
            for name in names.split():
                if fields.setdefault((kind, name), entry) is not entry:
                    raise ValueError(f"expected each field once, found {kind}: {name} twice")
    return fields


WEAKENS: Mapping[Field, Lister | Elsewhere | AsField] = _spread(
    (accepted.allowed_calls, [(Options, "allow"), (Policy, "allow")]),
    (accepted.disabled_checks, [(Options, "disabled_checks")]),
    (accepted.without_outputs, [(Options, "without_outputs nothing_to_compare")]),
    (accepted.registered_modules, [(Options, "register")]),
    (accepted.conversion, [(Manifest, "converted_from"), (ConvertedFrom, "reader way")]),
    (accepted.derived_origin, [(Manifest, "origin"), (Origin, "outputs_by derived")]),
    (accepted.not_reproducible, [(Manifest, "reproducible")]),
    (accepted.own_comparison, [(Manifest, "comparison"), (Comparison, "compare rtol atol ulp")]),
    (accepted.stored_factors, [(Manifest, "factors"), (FactorGroup, "compare outputs")]),
    (accepted.numbers_rule, [(Policy, "numbers"), (NumbersRule, "cases writers compare rtol atol ulp")]),
    (accepted.quirks, [(Policy, "quirks"), (Quirk, "case writer rtol atol ulp allow expires permanent")]),
    (accepted.platform_tolerances, [(Policy, "tolerances"), (Tolerance, "rtol atol ulp")]),
    (accepted.platform_of_writer, [(Writer, "platform")]),
    (accepted.other_noise, [(NoiseRecord, "jaxlib unmeasured compiled inside kernel moved")]),
    (accepted.any_refusal, [(Check, "refused")]),
    (accepted.calls_left_out, [(Manifest, "checks"), (Options, "vjp_order")]),
    (accepted.as_its_artifact_has_it, [(Manifest, "test out_shardings"), (Check, "out_shardings")]),
    (accepted.shorter_windows, [(Policy, "windows"), (WindowDays, "backward forward")]),
    (accepted.required_outside, [(Required, "outside")]),
    (accepted.calendar_days, [(Policy, "calendar_days")]),
    (Elsewhere("unmeasured"), [(Manifest, "noise")]),
    (Elsewhere("inputs_only"), [(NoiseRecord, "failed")]),
    # By the arrays, and not by what golden.yaml says of them.
    (
        Elsewhere("undecided"),
        [(NoiseRecord, "unstable jumping undecided_outputs"), (UndecidedOutput, "elements of noise largest leaf")],
    ),
    (Elsewhere("unpromised"), [(Policy, "unpromised")]),
    (
        Elsewhere("known"),
        [
            (Policy, "known_failures"),
            (KnownFailure, "cases writers readers verdict stage message platforms at_most expires permanent"),
        ],
    ),
    (Elsewhere("pytest"), [(Policy, "changed_module"), (MARKER, "changed_module")]),
    *((AsField(Comparison, name), [(Policy, name)]) for name in ("rtol", "atol")),
    *((AsField(Comparison, name), [(MARKER, name)]) for name in ("compare", "rtol", "atol", "ulp")),
    *(
        (AsField(Options, name), [(MARKER, name)])
        for name in ("vjp_order", "allow", "disabled_checks", "register", "nothing_to_compare", "without_outputs")
    ),
)
"""Every field that makes a verdict say less, with how reports tell it."""

DOES_NOT: Mapping[Field, str] = _spread(
    (
        "the artifact's bytes or the calendar contradict another value: see goldens/verify.py",
        [
            (Writer, "jax jaxlib built jaxlib_extension_version xla_extension_version"),
            (Manifest, "writer signature custom_calls"),
            (Signature, "inputs outputs in_tree out_tree"),
            (Options, "platforms mesh"),
        ],
    ),
    ("the hash of the bytes that are there", [(Manifest, "files"), (ConvertedFrom, "sha256")]),
    (
        "it only names, explains or describes",
        [
            (Manifest, "case name jaxpr packages flattened instruction_set format inputs_made inputs_rule"),
            (Writer, "python"),
            (JaxprSummary, "primitives constants effects"),
            (Flattened, "inputs outputs nodes"),
            (NoiseRecord, "instruction_set amplified"),
            (Origin, "inputs outputs seed source"),
            (ConvertedFrom, "rewrites tool module_by"),
            (Check, "name"),
            (Policy, "known_issues"),
            (NumbersRule, "reason location"),
            (Quirk, "reason owner issue added approver location"),
            (KnownFailure, "reason owner issue added approver location"),
        ],
    ),
    (
        "it decides how an artifact is exported or called; the results are compared all the same",
        [
            (Manifest, "flags options"),
            (Check, "vjp inputs outputs mesh spread in_specs"),
            (Options, "symbolic_shapes constraints in_specs calling_convention_version ignore_forward_compatibility"),
            (MARKER, "symbolic_shapes constraints mesh in_specs calling_convention_version"),
            (MARKER, "ignore_forward_compatibility"),
        ],
    ),
    (
        "it only adds cells, calls, or conditions of a run",
        [
            (Options, "refused_on"),
            (MARKER, "refused_on spread_over"),
            (Policy, "deployed required fail_on custom_call_changes changed_inputs unused_goldens"),
            (DeploymentTarget, "name jaxlib reader platform settings since until cases location"),
            (Required, "readers writers platforms cells"),
            (CustomCallChange, "old new introduced release reason owner issue"),
        ],
    ),
    (
        "it decides which goldens, releases and cells there are; a verdict is about one cell",
        [
            (Policy, "goldens readers platforms releases retention"),
            (MARKER, "platforms"),
            (ExtraReleases, "jaxlib jax runtimes"),
            (JaxlibRelease, "built python stablehlo yanked"),
            (JaxRelease, "built minimum_jaxlib yanked"),
            (RuntimeRelease, "built python stablehlo convention dialects requires"),
            (Retention, "deployed pinned"),
            (Pin, "goldens reason"),
        ],
    ),
    (
        "it decides what is installed, and the environment of a process",
        [(Policy, "reader_packages reader_packages_from_source environment backfill_install")],
    ),
    ("it only leaves out remarks where a golden is written", [(MARKER, "constant")]),
)
"""Every other field of golden.yaml, of a policy and of the marker, with why no verdict says less by it.

What features add to a policy, their `FeatureKey` explains.
"""
