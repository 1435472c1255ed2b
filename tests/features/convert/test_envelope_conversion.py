"""An envelope rewritten in the format of another release: the same artifact, field by field."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stored_artifacts import DATA, FILES, NAMES

from export_core.artifact import Artifact, ArtifactError, DisabledCheck, HloSharding, NamedSharding, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.formats import fields_of, format_of, wire_version
from export_core.artifact.hlo_sharding import proto_of, spec_on, tiles_of
from export_core.artifact.readers import loads
from export_core.features.convert.convert import (
    REWRITTEN,
    UNCHANGED,
    Converted,
    ModuleJob,
    RewrittenModules,
    calls_not_taken,
    check_converted,
    convert,
    find_reader,
)
from export_core.features.convert.envelope import rewrite_envelope
from export_core.features.convert.errors import ConversionRefused
from export_core.releases import ReleaseError, load_calendar
from studies.artifact.fuzz import damaged

CALENDAR = load_calendar()
RELEASES = ("0.4.30", "0.6.2", "0.8.1", "0.8.3", "0.9.2", "0.12.0.1")
READERS = {jaxlib: find_reader(jaxlib, CALENDAR) for jaxlib in RELEASES}
GOLDENS = DATA.parents[2] / "golden"
SAME = (
    *("fun_name", "in_tree", "out_tree", "platforms", "nr_devices", "module_kept_var_idx", "module_source"),
    *("ordered_effects", "unordered_effects", "disabled_checks", "uses_global_constants"),
)


def no_module(job: ModuleJob) -> RewrittenModules:
    raise ConversionRefused("the module is in the way")


def rewritten(artifact: Artifact, jaxlib: str) -> Artifact:
    modules = [module.serialized() for module in artifact.modules]
    return read_bytes(rewrite_envelope(artifact, READERS[jaxlib], modules)[0])


def for_reader(artifact: Artifact, jaxlib: str) -> Converted:
    return convert(artifact, READERS[jaxlib], no_module)


def changed(artifact: Artifact, **fields: object) -> Artifact:
    envelope = artifact.envelope._replace(**fields)
    return read_bytes(encode(envelope), artifact.name)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_rewriting_an_envelope_keeps_all_its_values(path):
    before = read(path)
    for jaxlib in READERS:
        after = rewritten(before, jaxlib)
        number = format_of(READERS[jaxlib].release.jax)
        assert after.envelope.serialization_version == wire_version(number)
        for old, new in zip(levels(before.envelope), levels(after.envelope), strict=True):
            assert set(new.slots) <= {*fields_of(number), "vjp"}
            assert [getattr(new, field) for field in SAME] == [getattr(old, field) for field in SAME]
            assert list(map(str, (*new.in_avals, *new.out_avals))) == list(map(str, (*old.in_avals, *old.out_avals)))
            assert [tiles(x, a) for x, a in placed(new)] == [tiles(x, a) for x, a in placed(old)]


def levels(envelope):
    while envelope is not None:
        yield envelope
        envelope = envelope.vjp


def placed(envelope):
    shardings = (*envelope.in_shardings, *envelope.out_shardings)
    return zip(shardings, (*envelope.in_avals, *envelope.out_avals), strict=True)


def tiles(sharding, aval):
    """Return which part of an array each device has, which is the same in both forms of a sharding."""
    if isinstance(sharding, HloSharding):
        return tiles_of(sharding.proto, "")
    if sharding is None:
        return "unspecified"
    sizes = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_sizes, strict=True))
    return tiles_of(proto_of(sizes, sharding.spec.partitions, len(aval.shape)), "")


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_conversion_loads_or_is_refused(path):
    artifact, taken = read(path), 0
    for jaxlib, before in zip(READERS, loads(artifact, READERS.values()), strict=True):
        try:
            converted = for_reader(artifact, jaxlib)
        except ConversionRefused:
            continue
        (after,) = loads(converted.artifact, [READERS[jaxlib]])
        assert after.ok
        assert converted.way == (REWRITTEN if not before.ok or converted.rewrites else UNCHANGED)
        taken += 1
    # At least one reader accepts each artifact, except the one with a custom call that no reader knows.
    assert taken or path.relative_to(DATA).parts[:2] == ("0.4.30", "cholesky.jaxexport")


def test_a_sharding_is_written_as_xla_writes_it():
    """Artifacts of formats 6 to 8 have a sharding in both forms, the second written by XLA itself."""
    compared = 0
    for path in GOLDENS.glob("tests.compat.test_devices.*/0.9.2-cpu/artifact.jaxexport"):
        for sharding, aval in placed(read(path).envelope):
            if isinstance(sharding, NamedSharding) and not sharding.spec.unreduced:
                sizes = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_sizes, strict=True))
                proto = proto_of(sizes, sharding.spec.partitions, len(aval.shape))
                assert proto == sharding.hlo_sharding_proto
                compared += 1
    assert compared > 20


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    )
)
def test_a_sharding_survives_a_round_trip_through_xlas_form(drawn):
    sizes, dimensions = drawn
    mesh = {f"a{number}": size for number, size in enumerate(sizes)}
    spec = tuple(tuple(name for name, at in zip(mesh, dimensions, strict=True) if at == dim) for dim in range(2))
    tiling = tiles_of(proto_of(mesh, spec, 3), "")
    again = spec_on(mesh, tiling)
    assert again is not None
    assert tiles_of(proto_of(mesh, again, 3), "") == tiling


@pytest.mark.parametrize(
    ("name", "jaxlib", "reason"),
    [
        ("0.12.0.1/key", "0.4.30", "does not know the dtype key<fry>"),
        ("0.12.0.1/point", "0.4.30", "does not know custom pytree nodes"),
        ("0.9.2/cholesky", "0.8.1", "lapack_spotrf_ffi crashes jaxlib 0.8.1 by signal 11"),
        ("0.4.30/cholesky", "0.12.0.1", "lapack_spotrf .* not guaranteed stable by jaxlib 0.12.0.1"),
    ],
)
def test_a_refused_conversion_names_the_reason(name, jaxlib, reason):
    with pytest.raises(ConversionRefused, match=reason):
        convert(read(DATA / f"{name}.jaxexport"), READERS[jaxlib], lambda job: RewrittenModules(job.modules, (), "x"))


MLP, SHARDED = (read(DATA / "0.12.0.1" / f"{name}.jaxexport") for name in ("mlp", "sharded"))
OLD_MLP, OLD_SHARDED = (read(DATA / "0.6.2" / f"{name}.jaxexport") for name in ("mlp", "sharded"))
NAMED = next(x for x in SHARDED.envelope.in_shardings if x is not None)


def resharded(**fields: object) -> Artifact:
    """Build an artifact whose arguments all have the same sharding, with these fields of its spec."""
    sharding = NAMED._replace(spec=NAMED.spec._replace(**fields))
    return changed(SHARDED, in_shardings=(sharding,) * len(SHARDED.envelope.in_avals))


@pytest.mark.parametrize(
    ("artifact", "jaxlib", "reason"),
    [
        (changed(MLP, in_avals=[x._replace(memory_space="any") for x in MLP.envelope.in_avals]), "0.8.1", "space any"),
        (changed(SHARDED, in_shardings=(NAMED._replace(memory_kind="h"),) * 2), "0.8.1", "the memory kind h,"),
        (resharded(unreduced=("no such axis",)), "0.8.1", "reduced or unreduced"),
        (resharded(partitions=("no such axis",)), "0.8.1", "is not a sharding of an array"),
        (changed(MLP, calling_convention_version=8), "0.8.1", "calling convention is 8"),
        (changed(MLP, calling_convention_version=11), "0.8.1", "is 11, and the newest that the reader knows is 10"),
        (changed(MLP, nr_devices=1 << 15), "0.8.1", "32768 devices"),
        (changed(OLD_SHARDED, nr_devices=5000), "0.12.0.1", "at most 4096 devices, found 5000.*bypass"),
        (
            changed(OLD_MLP, calling_convention_version=8),
            "0.12.0.1",
            "calling convention is 8.*JAX's own bypass, .*DESERIALIZE_EXPIRED_VERSIONS=1.*not cover",
        ),
    ],
    ids=["space", "memory", "unreduced", "axes", "old", "new", "devices", "mesh", "bypass"],
)
def test_an_artifact_with_a_value_unknown_to_the_reader_is_refused(artifact, jaxlib, reason):
    with pytest.raises(ConversionRefused, match=reason) as refused:
        for_reader(artifact, jaxlib)
    assert ("bypass" in str(refused.value)) is ("bypass" in reason)


def test_a_disabled_check_unknown_to_the_reader_is_dropped():
    checks = (DisabledCheck("shape_assertions"), DisabledCheck("platform"))
    artifact = changed(OLD_MLP, disabled_checks=checks)
    converted = for_reader(artifact, "0.12.0.1")
    assert converted.artifact.envelope.disabled_checks == (DisabledCheck("platform"),)
    assert any("shape_assertions left out" in text for text in converted.rewrites)
    assert re.match(r"envelope of format [1-9, or]+ rewritten in format 12", converted.rewrites[0])


def test_converting_into_the_same_format_reports_no_new_format():
    artifact = read(DATA / "0.9.2" / "mlp.jaxexport")
    serialized = [module.serialized() for module in artifact.modules]
    _, notes = rewrite_envelope(artifact, find_reader("0.9.2", CALENDAR), serialized)
    assert notes[0] == "envelope written in format 8, which the original may have too, with 2 derivatives"


@settings(max_examples=150, deadline=1000, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(READERS)))
def test_damaged_artifacts_are_refused_or_converted(choose, jaxlib):
    try:
        artifact = read_bytes(damaged([path.read_bytes() for path in FILES], choose))
        (load,) = loads(convert(artifact, READERS[jaxlib], no_module).artifact, [READERS[jaxlib]])
    except (ArtifactError, ConversionRefused):
        return
    assert load.ok


def test_the_for_option_accepts_only_versions_in_the_calendar():
    assert find_reader("0.9.2", CALENDAR).release.jaxlib == "0.9.2"
    with pytest.raises(ReleaseError, match=r"--for: jaxlib 0\.9\.22 is not in the release calendar"):
        find_reader("0.9.22", CALENDAR)


@pytest.mark.parametrize(
    ("name", "jaxlib", "replaced", "platform"),
    [
        ("0.9.2/cholesky", "0.9.2", ("lapack_spotrf_ffi", "lapack_strsm_ffi"), "tpu"),  # its modules are not in the way
        ("0.12.0.1/cholesky", "0.10.0", (), "cpu"),  # only its modules are
        ("0.4.30/cholesky", "0.12.0.1", ("blas_strsm", "lapack_spotrf"), "cpu"),
    ],
)
def test_only_calls_that_the_reader_lacks_are_replaced(name, jaxlib, replaced, platform):
    jobs = []

    def write_down(job):
        jobs.append(job)
        raise ConversionRefused("written down")

    with pytest.raises(ConversionRefused, match="written down"):
        convert(
            *(read(DATA / f"{name}.jaxexport"), find_reader(jaxlib, CALENDAR), write_down), replace_custom_calls=True
        )
    assert [(job.replace, job.platform) for job in jobs] == [(replaced, platform)]


def test_allowed_custom_calls_are_not_replaced():
    allowed = dict.fromkeys(("lapack_spotrf", "blas_strsm"), "our readers register it")
    artifact = read(DATA / "0.4.30" / "cholesky.jaxexport")
    assert convert(artifact, READERS["0.12.0.1"], no_module, allow=allowed).replaced == ()


def test_an_artifact_that_its_reader_loads_is_unchanged():
    converted = for_reader(MLP, "0.9.2")
    assert (converted.way, converted.why) == (UNCHANGED, "jaxlib 0.9.2 takes the original")
    assert converted.artifact is MLP


def test_a_conversion_says_why_it_was_needed():
    assert for_reader(MLP, "0.8.1").why.startswith("jax before 0.8.2 refuses serialization version 12; ")


def test_named_shardings_are_rewritten_for_readers_without_them():
    both = rewritten(SHARDED, "0.9.2")
    assert for_reader(both, "0.8.3").way == UNCHANGED, "XLA's shardings are beside the named ones"
    named = tuple(sharding._replace(hlo_sharding_proto=None) for sharding in both.envelope.in_shardings)
    converted = for_reader(changed(both, in_shardings=named), "0.8.3")
    assert (converted.way, converted.why) == (REWRITTEN, "jaxlib 0.8.3 would miss its shardings")
    for jaxlib in ("0.9.0", "0.9.2"):
        found = convert(changed(both, in_shardings=named), find_reader(jaxlib, CALENDAR), no_module)
        assert found.way == UNCHANGED, "it reads the named ones"


def test_a_converted_artifact_must_load_in_its_reader():
    artifact = read(DATA / "0.9.2" / "cholesky.jaxexport")
    assert loads(artifact, [READERS["0.9.2"]])[0].ok
    with pytest.raises(ConversionRefused, match=r"lapack_spotrf_ffi crashes jaxlib 0\.9\.2 by signal 11"):
        check_converted(artifact, artifact, READERS["0.9.2"], {})
    with pytest.raises(ConversionRefused, match="refuses serialization version"):
        check_converted(artifact, artifact, READERS["0.4.30"], {"lapack_spotrf_ffi": "", "lapack_strsm_ffi": ""})
    check_converted(artifact, artifact, READERS["0.12.0.1"], {})


def test_a_converted_module_that_contradicts_avals_is_refused():
    first, *rest = MLP.envelope.in_avals
    other = changed(MLP, in_avals=(first._replace(shape=(5, *first.shape[1:])), *rest))
    with pytest.raises(ConversionRefused, match="the converted artifact's module does not match its envelope"):
        check_converted(MLP, other, READERS["0.12.0.1"], {})
    check_converted(other, other, READERS["0.12.0.1"], {})  # so it was before


def test_the_refusal_of_an_expired_convention_mentions_jaxs_bypass():
    checks = (DisabledCheck("shape_assertions"),)
    old = changed(OLD_MLP, calling_convention_version=8, disabled_checks=checks)
    reasons = loads(old, [READERS["0.12.0.1"]])[0].reasons
    assert {"expired" in reason for reason in reasons} == {True, False}
    with pytest.raises(ConversionRefused, match="JAX's own bypass"):
        for_reader(old, "0.12.0.1")


@pytest.mark.parametrize(
    ("platforms", "checks", "crashes"),
    [
        (("cpu",), (), True),
        (("tpu", "cpu"), (), True),
        (("tpu",), (), False),
        (("tpu",), (DisabledCheck("platform"),), True),
        (("tpu",), (DisabledCheck("custom_call", "t"),), False),
    ],
)
def test_a_custom_call_that_crashes_the_reader_on_cpu_is_reported(platforms, checks, crashes):
    artifact = changed(read(DATA / "0.9.2" / "cholesky.jaxexport"), platforms=platforms, disabled_checks=checks)
    problems = calls_not_taken(artifact, READERS["0.9.2"], {})
    assert any("crashes jaxlib 0.9.2" in problem for problem in problems.values()) is crashes


def test_a_bare_modules_call_that_crashes_the_reader_is_reported():
    module = read_bytes(read(DATA / "0.9.2" / "cholesky.jaxexport").module.serialized())
    assert all("crashes jaxlib 0.9.2" in problem for problem in calls_not_taken(module, READERS["0.9.2"], {}).values())
