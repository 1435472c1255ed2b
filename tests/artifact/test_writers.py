import pytest
from kept import DATA, FILES, NAMES

from export_core.artifact import read, read_bytes
from export_core.artifact.writers import writers
from export_core.releases.entries import shipped_entries

RELEASES = shipped_entries()


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_writer_is_among_the_few_that_fit(path):
    found = writers(read(path), RELEASES)
    assert path.parent.name in found
    assert len(found) <= (13 if path.parent.name == "0.4.30" else 4)


def test_the_format_tells_apart_what_the_module_cannot():
    assert writers(read(DATA / "0.8.1" / "platforms.jaxexport"), RELEASES) == ("0.8.1",)


def test_the_format_is_that_of_the_jax_and_not_of_the_jaxlib():
    """jax 0.4.24 works on jaxlib 0.4.19, whose own jax wrote another format."""
    assert "0.4.19" in writers(read(DATA / "0.4.30" / "mlp.jaxexport"), RELEASES)
    assert "0.4.18" not in writers(read(DATA / "0.4.30" / "mlp.jaxexport"), RELEASES)


def test_what_a_bare_module_is_written_for_did_not_write_it():
    """0.9.2 writes for the StableHLO that was current in 0.9.0, and neither that nor 0.8.1 need be its writer."""
    module = read(DATA / "0.9.2" / "mlp.jaxexport").module
    found = writers(read_bytes(module.serialized()), RELEASES)
    assert module.stablehlo_version == "1.13.7"
    assert {"0.9.0", "0.9.2", "0.12.0.1"} < {*found}
    assert "0.8.1" not in found
