"""Parts of a module that jaxlib reads differently from this reader, or that this reader cannot read, fail an audit."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from forge import varint
from stored_artifacts import DATA, FILES, NAMES, jax_goldens

from export_core.artifact import ArtifactError, read, read_bytes
from export_core.artifact.audit import audit
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan, UnknownField
from export_core.releases.stable_targets import stable_targets
from studies.artifact.taken_apart import ATTRS, Block, Operation, TakenApart, take_apart

CHOLESKY = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
STABLE = stable_targets("0.12.0.1")


def module() -> TakenApart:
    return take_apart(CHOLESKY.module.serialized())


def call_of(parts: TakenApart) -> Operation:
    return next(op for op in parts.operations() if b"custom_call" in parts.name_of(op))


def problems(parts: TakenApart, **allow: str) -> dict[str, str]:
    """Return the findings that fail the audit: the standing of each, such as `unknown`, by the finding's target."""
    found = audit(read_bytes(parts.encode()), STABLE, allow=allow)
    return {finding.target: finding.standing for finding in found if not finding.ok}


def with_entry(parts: TakenApart, op: Operation, name: bytes, value: int) -> None:
    """Append an entry to the attributes of an operation."""
    entries = parts.entries(op.attributes) if op.mask & ATTRS else []
    op.attributes = parts.dictionary([*entries, (parts.text(name), value)])
    op.mask |= ATTRS


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_real_artifacts_are_read_whole(path):
    assert read(path).unread == ()


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_modules_of_the_jax_wheel_are_read_whole():
    for name, golden in jax_goldens().items():
        assert read_bytes(golden["mlir_module_serialized"], name).unread == (), name


@pytest.mark.parametrize("dialect", ["stablehlo", "mhlo", "func", "llvm", ""])
def test_another_dialect_is_refused_and_never_allowed(dialect):
    parts = module()
    call_of(parts).name = parts.name(dialect.encode(), b"custom_call")
    assert problems(parts)[dialect] == "foreign"
    assert problems(parts, **{dialect: "we trust it"})[dialect] == "foreign"


@pytest.mark.parametrize("version", range(5))
def test_another_dialect_is_refused_in_old_bytecode(version):
    parts = take_apart(read(DATA / "0.4.30" / "cholesky.jaxexport").module.serialized())
    assert parts.version < 5
    parts.version = version
    parts.dialect(b"stablehlo")
    assert [part.name for _, part in read_bytes(parts.encode()).unread] == ["stablehlo"]


@pytest.mark.parametrize("operation", ["vhlo.constant_v99", "sdy.brand_new", "builtin.other"])
def test_an_unknown_operation_is_refused_unless_allowed(operation):
    dialect, _, name = operation.partition(".")
    parts = module()
    parts.name(dialect.encode(), name.encode())
    assert problems(parts) == {operation: "unknown"}
    assert problems(parts, **{operation: "it is a constant"}) == {}


def test_a_future_custom_call_is_never_allowed():
    parts = module()
    parts.name(b"vhlo", b"custom_call_v99")
    assert problems(parts, **{"vhlo.custom_call_v99": "we trust it"}) == {"vhlo.custom_call_v99": "unknown"}


@pytest.mark.parametrize("dialect", ["vhlo", "builtin", "sdy"])
def test_an_unknown_attribute_is_refused_unless_allowed(dialect):
    parts = module()
    parts.attribute(dialect.encode(), varint(99))
    name = f"{dialect} attribute 99"
    assert problems(parts) == {name: "unknown"}
    assert problems(parts, **{name: "it is a number"}) == {}


def test_an_unknown_type_is_refused():
    parts = module()
    parts.types.append(type(parts.types[0])(parts.dialect(b"vhlo"), varint(99)))
    assert problems(parts) == {"vhlo type 99": "unknown"}


@pytest.mark.parametrize("dialect", ["vhlo", "builtin", "sdy"])
def test_an_attribute_stored_as_text_is_refused(dialect):
    parts = module()
    parts.attribute(dialect.encode(), b'{call_target_name = "evil"}\0', custom=False)
    assert problems(parts) == {f"{dialect} text": "foreign"}


def test_an_operation_marked_unregistered_is_refused():
    parts = module()
    parts.names[call_of(parts).name].registered = False
    assert problems(parts) == {"vhlo.custom_call_v2": "foreign"}


def test_content_of_the_resource_sections_is_refused():
    parts = module()
    parts.others[5] = b"evil"
    assert problems(parts) == {"resources": "foreign"}


def test_a_target_name_given_as_an_attribute_is_audited_too():
    parts = module()
    with_entry(parts, call_of(parts), b"call_target_name", parts.target(b"evil"))
    assert problems(parts) == {"call_target_name of vhlo.custom_call_v2": "conflict", "evil": "unlisted"}


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        *((b"custom_call_v2", name) for name in ("api_version", "backend_config", "called_computations")),
        *((b"custom_call_v2", "has_side_effect"), (b"func_v1", "sym_name"), (b"func_v1", "rng_algorithm")),
    ],
)
def test_an_attribute_that_overrides_a_property_is_refused(operation, name):
    parts = module()
    found = next(op for op in parts.operations() if parts.name_of(op) == b"vhlo." + operation)
    with_entry(parts, found, name.encode(), parts.target(b"evil"))
    assert problems(parts) == {f"{name} of vhlo.{operation.decode()}": "conflict"}


def test_an_rng_algorithm_attribute_of_a_custom_call_is_accepted():
    """jax writes this attribute on dynamic_rng_bit_generator; only rng_bit_generator has a property of that name."""
    parts = module()
    with_entry(parts, call_of(parts), b"rng_algorithm", parts.target(b"DEFAULT"))
    assert problems(parts) == {}


def test_the_same_attribute_twice_is_refused():
    parts = module()
    call = call_of(parts)
    with_entry(parts, call, b"mhlo.backend_config", parts.target(b"other"))
    parts.strings.append(b"mhlo.backend_config")  # the same name as a second string
    assert problems(parts) == {"mhlo.backend_config of vhlo.custom_call_v2": "conflict"}


def test_two_targets_in_old_bytecode_are_refused():
    parts = take_apart(read(DATA / "0.4.30" / "cholesky.jaxexport").module.serialized())
    with_entry(parts, call_of(parts), b"call_target_name", parts.target(b"evil"))
    artifact = read_bytes(parts.encode())
    assert [(part.name, part.standing) for _, part in artifact.unread] == [
        ("call_target_name of vhlo.custom_call_v1", "conflict")
    ]


def test_an_attribute_without_a_string_name_is_refused():
    parts = module()
    call = call_of(parts)
    call.attributes = parts.dictionary([(parts.target(b"mhlo.sharding"), parts.text(b"y"))])
    call.mask |= ATTRS
    assert problems(parts) == {"vhlo.custom_call_v2": "foreign"}


def test_attributes_that_are_not_a_dictionary_are_refused():
    parts = module()
    other = next(op for op in parts.operations() if parts.name_of(op) == b"vhlo.select_v1")
    other.attributes = parts.target(b"evil")
    other.mask |= ATTRS
    assert problems(parts) == {"vhlo.select_v1": "foreign"}


def test_calls_in_a_nested_module_are_reported():
    parts = module()
    (outer,) = parts.block.operations
    inner = Operation(outer.name, outer.mask & ~ATTRS, outer.location, properties=outer.properties)
    inner.regions, inner.values, inner.isolated = outer.regions, outer.values, outer.isolated
    outer.regions, outer.values = [[Block([inner])]], [0]
    parts.strings[parts.strings.index(b"lapack_spotrf_ffi")] = b"hidden"
    assert problems(parts) == {"hidden": "unlisted"}


def _more_properties(parts: TakenApart) -> bytes:
    parts.properties[call_of(parts).properties] += varint(parts.target(b"evil"))
    return parts.encode()


REFUSED: dict[str, Callable[[TakenApart], bytes]] = {
    "properties with a number more": _more_properties,
    "a second module behind the first": lambda parts: parts.encode() * 2,
    "text": lambda _: b"module { stablehlo.custom_call @evil() : () -> () }",
    "a target that is not UTF-8": lambda parts: parts.encode().replace(b"lapack_spotrf_ffi", b"lapack_\xffpotrf_ffi"),
    "bytecode 7": lambda parts: replace(parts, version=7).encode(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_unreadable_module_is_refused_in_main_and_vjp(what: str):
    data = REFUSED[what](module())
    span = ByteSpan(data, 0, len(data))
    envelope = CHOLESKY.envelope
    for whole in (
        envelope._replace(module_source=span),
        envelope._replace(vjp=envelope.vjp._replace(module_source=span)),
    ):
        with pytest.raises(ArtifactError):
            audit(read_bytes(encode(whole)), STABLE)


def test_another_dialect_in_a_vjp_is_located():
    parts = take_apart(CHOLESKY.modules[1].serialized())
    parts.dialect(b"stablehlo")
    data = parts.encode()
    envelope = CHOLESKY.envelope
    hidden = envelope._replace(vjp=envelope.vjp._replace(module_source=ByteSpan(data, 0, len(data))))
    (finding,) = [finding for finding in audit(read_bytes(encode(hidden)), STABLE) if not finding.ok]
    assert finding.target == "stablehlo"
    assert "found in the VJP of order 1" in finding.message


def test_an_unknown_field_of_the_envelope_is_refused():
    artifact = read_bytes(bytes(CHOLESKY.data))
    artifact.envelope = artifact.envelope._replace(unknown_fields=(UnknownField("Exported", 99, 0),))
    findings = [finding for finding in audit(artifact, STABLE) if not finding.ok]
    assert [(finding.target, finding.standing) for finding in findings] == [("field Exported[99]", "unknown")]


def test_an_unknown_shardy_target_is_reported_as_unlisted():
    parts = module()
    parts.strings[parts.strings.index(b"lapack_spotrf_ffi")] = b"xla.sdy.evil"
    assert problems(parts) == {"xla.sdy.evil": "unlisted"}


def test_a_finding_advises_to_allow_an_operation_or_export_again():
    parts = module()
    parts.name(b"vhlo", b"constant_v99")
    parts.dialect(b"mhlo")
    unknown, foreign = (str(f) for f in sorted(audit(read_bytes(parts.encode()), STABLE), reverse=True) if not f.ok)
    assert "allow: {vhlo.constant_v99: why it may be run}" in unknown
    assert "do not run it, and export the function again" in foreign
