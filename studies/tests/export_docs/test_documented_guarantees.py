"""The statements of JAX's export document on custom calls: which are refused or allowed, and which target is used."""

from __future__ import annotations

import functools

import jax
import pytest
from jax import export
from jax._src import config, core  # the document takes core and mlir from here, too; nothing public lowers as it does
from jax._src.interpreters import mlir
from jax._src.lib import version as jaxlib_version

from export_core.artifact.audit import audit
from export_core.export.errors import ExportError
from export_core.releases.stable_targets import stable_targets


def _primitive(name, lowering, platform=None):
    new = core.Primitive(name)
    new.def_abstract_eval(lambda x: x)
    mlir.register_lowering(new, lambda ctx, o: [o])
    mlir.register_lowering(new, lowering, platform=platform)
    return new


def _call(target, operand):
    return mlir.custom_call(target, operands=[operand], result_types=[operand.type]).results


# Primitives and lowerings come from jax._src, as in the documents.
# Section "Compatibility guarantees for custom calls". The June 2024 document, and the note of May 2024 that it came
# from, override sin.
new_prim = _primitive("new_prim", lambda ctx, o: _call("my_new_prim", o))
# A primitive that also runs here, since the tool runs what it exports: on this platform it calls no unregistered
# target.
for_tpus = _primitive("for_tpus", lambda ctx, o: _call("my_new_prim", o), platform="tpu")

REFUSED = "custom calls whose targets have no compatibility guarantees"


def test_a_lowering_can_call_a_target_of_its_own():
    module = str(jax.jit(new_prim.bind).lower(1.0).compiler_ir())
    # backend_config = "" is written in 0.4.33 and later.
    assert "stablehlo.custom_call @my_new_prim(%arg0) {api_version = 2 : i32" in module


def test_an_export_refuses_a_target_without_guarantees(export_marked):
    with pytest.raises(ValueError, match=rf"{REFUSED}(?s:.*)my_new_prim"):
        export.export(jax.jit(new_prim.bind))(1.0)
    with pytest.raises(ExportError, match="my_new_prim"):
        export_marked(jax.jit(for_tpus.bind), 1.0, platforms=("tpu",))


def test_a_disabled_check_lets_a_target_pass_and_is_recorded(export_marked):
    exported = export.export(
        jax.jit(new_prim.bind), disabled_checks=[export.DisabledSafetyCheck.custom_call("my_new_prim")]
    )(1.0)
    assert "@my_new_prim" in exported.mlir_module()
    produced = export_marked(
        jax.jit(for_tpus.bind),
        1.0,
        platforms=("tpu",),
        disabled_checks={"my_new_prim": "it is ours, and does not change"},
    )
    envelope = produced.artifact.envelope
    assert [(check.kind, check.target) for check in envelope.disabled_checks] == [("custom_call", "my_new_prim")]
    assert [call.target for call in produced.artifact.custom_calls] == ["my_new_prim"]
    assert produced.manifest.options.disabled_checks == {"my_new_prim": "it is ours, and does not change"}


def test_each_target_needs_its_own_disabled_check(export_marked):
    def both(x):
        return for_tpus.bind(changed.bind(x))

    ours = {"my_new_prim": "it is ours", "T": "it is ours too"}
    for target in ours:
        others = {name: reason for name, reason in ours.items() if name != target}
        with pytest.raises(ExportError, match=rf"promises nothing: {target}\."):
            export_marked(jax.jit(both), 1.0, platforms=("tpu",), disabled_checks=others)
    produced = export_marked(jax.jit(both), 1.0, platforms=("tpu",), disabled_checks=ours)
    assert [check.target for check in produced.artifact.envelope.disabled_checks] == [*ours]
    assert {*_targets(produced)} == {*ours}


def test_the_audit_tells_a_target_from_its_disabled_check(export_marked):
    produced = export_marked(
        jax.jit(for_tpus.bind), 1.0, platforms=("tpu",), disabled_checks={"my_new_prim": "to look at it"}
    )
    stable = stable_targets(produced.manifest.writer.jaxlib)
    found, check = audit(produced.artifact, stable)
    assert (found.target, found.standing, found.ok) == ("my_new_prim", "unlisted", False)
    assert (check.standing, check.ok) == ("disabled check", True)


# Section "Ensuring forward and backward compatibility": the lowering rule of day D. `since` is the first jaxlib with
# T_NEW; every jaxlib here has it, except in the test of `too_new`.


def my_lowering_rule(ctx, operand, since=(0, 4, 31)):
    if ctx.is_forward_compat() or jaxlib_version < since:
        return _call("T", operand)
    return _call("T_NEW", operand)


changed = _primitive("changed", my_lowering_rule, platform="tpu")
too_new = _primitive("too_new", functools.partial(my_lowering_rule, since=(99,)), platform="tpu")
OURS = {"T": "an example", "T_NEW": "an example"}


def _targets(produced):
    return [call.target for call in produced.artifact.custom_calls]


def test_an_export_uses_the_old_target_for_old_readers(export_marked):
    assert _targets(export_marked(jax.jit(changed.bind), 1.0, platforms=("tpu",), disabled_checks=OURS)) == ["T"]


def test_a_lowering_without_export_uses_the_new_target():
    lowered = jax.jit(changed.bind).trace(1.0).lower(lowering_platforms=("tpu",))
    assert "@T_NEW(" in str(lowered.compiler_ir())


def test_ignoring_forward_compatibility_uses_the_new_target(export_marked):
    produced = export_marked(
        jax.jit(changed.bind), 1.0, platforms=("tpu",), disabled_checks=OURS, ignore_forward_compatibility=True
    )
    assert _targets(produced) == ["T_NEW"]
    assert produced.manifest.options.ignore_forward_compatibility is True


def test_an_older_jaxlib_uses_the_old_target(export_marked):
    lowered = jax.jit(too_new.bind).trace(1.0).lower(lowering_platforms=("tpu",))
    assert "@T(" in str(lowered.compiler_ir())
    options = {"platforms": ("tpu",), "disabled_checks": OURS, "ignore_forward_compatibility": True}
    assert export_marked(jax.jit(too_new.bind), 1.0, **options).manifest.custom_calls == ("T",)


def test_the_new_target_must_be_on_the_list_or_allowed(export_marked):
    options = {"platforms": ("tpu",), "ignore_forward_compatibility": True}
    with pytest.raises(ValueError, match=rf"{REFUSED}(?s:.*)T_NEW"), config.export_ignore_forward_compatibility(True):
        export.export(jax.jit(changed.bind), platforms=["tpu"])(1.0)
    with pytest.raises(ExportError, match="T_NEW"):
        export_marked(jax.jit(changed.bind), 1.0, disabled_checks={"T": "an example"}, **options)


# "We continuously add more": the list of guaranteed targets, release by release.


def test_the_list_of_guaranteed_targets_grows_and_shrinks():
    old, new = set(stable_targets("0.4.30")), set(stable_targets("0.12.0.1"))
    assert {"lapack_sgeqrf_ffi", "cusolver_geqrf_ffi"} <= new - old
    # The document only mentions additions: a target that no window needs any more is removed.
    assert {"lapack_sgeqrf", "cusolver_geqrf"} <= old - new
