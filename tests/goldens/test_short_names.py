"""The short name of a golden, as reports print it: each command that takes a golden answers with the full name."""

import shlex

import pytest
from commands import assert_bad_input
from making import manifest, write_golden

from export_core.goldens import GoldenStore

CASE = "tests.models.attention.test_layers.test_f"


@pytest.mark.parametrize("name", ["test_f", "test_f/0.9.2-cpu"])
@pytest.mark.parametrize(
    "command",
    [
        "explain 'NAME in 0.9.2 on cpu'",
        "bisect 'NAME in 0.9.2 on cpu'",
        "reduce 'NAME in 0.9.2 on cpu' -o out",
        "matrix NAME",
        "goldens verify NAME",
        "goldens rename NAME tests.test_b.test_f",
        "inspect NAME",
        "diff NAME NAME",
        "convert NAME --for 0.9.2 -o out",
        "can-i-deploy NAME --to serving",
    ],
)
def test_a_short_name_is_answered_with_the_full_name(command, name, cwd, jaxexport):
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.9.2}]\n")
    write_golden(GoldenStore(cwd / "golden"), manifest(CASE, "0.9.2"))
    words = [word.replace("NAME", name) for word in shlex.split(command)]
    assert_bad_input(jaxexport(*words), f"Did you mean '{CASE}'?")
