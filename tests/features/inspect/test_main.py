"""What `inspect` and `audit` say of a module whose `main` is not what its envelope says."""

from __future__ import annotations

import json

import jsonschema
import pytest
from artifacts import DATA, bare, changed

from export_core.artifact.main_check import NEWEST
from tools.schemas import schema

FORGED = {"module_kept_var_idx": (0,)}
SENTENCE = "main takes 2 arrays, and the envelope declares 1 kept argument."


def test_inspect_says_that_main_follows_its_calling_convention(jaxexport):
    assert (
        "convention    calling convention 10, and main follows it"
        in jaxexport("inspect", DATA / "0.12.0.1" / "mlp.jaxexport").out
    )


def test_inspect_says_what_main_does_otherwise(jaxexport, tmp_path):
    path = changed(tmp_path, "0.12.0.1/mlp", **FORGED)
    lines = jaxexport("inspect", path).out.splitlines()
    place = lines.index("convention    calling convention 10, and main does NOT follow it:")
    assert lines[place + 1].strip() == SENTENCE
    facts = json.loads(jaxexport("inspect", path, "--json").out)
    jsonschema.Draft202012Validator(schema("inspect")).validate(facts)
    assert facts["main"] == {"checked": True, "problems": [SENTENCE]}


def test_a_calling_convention_to_come_is_not_judged(jaxexport, tmp_path):
    path = changed(tmp_path, "0.12.0.1/mlp", calling_convention_version=NEWEST + 1, vjp=None, **FORGED)
    said = f"calling convention {NEWEST + 1}, which is not known here: main was not checked"
    assert said in jaxexport("inspect", path).out
    assert json.loads(jaxexport("inspect", path, "--json").out)["main"] == {"checked": False, "problems": []}


def test_a_bare_module_has_nothing_to_be_held_against(jaxexport, tmp_path):
    assert json.loads(jaxexport("inspect", bare(tmp_path), "--json").out)["main"] is None


@pytest.mark.parametrize("name", ["mlp", "cholesky"])
def test_audit_fails_where_main_is_not_what_the_envelope_says(name, jaxexport, tmp_path):
    ended = jaxexport("audit", changed(tmp_path, f"0.12.0.1/{name}", nr_devices=7))
    assert ended.code == 1
    assert "changed.jaxexport: main is not what the envelope says, written by" in ended.out
    assert (
        "  FAIL  the module of main is for 1 partition × 1 replica, and the envelope says nr_devices = 7." in ended.out
    )
