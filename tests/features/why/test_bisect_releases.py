"""A real bisection: the Cholesky of jaxlib 0.9.2, which crashes in a fresh process until 0.10.0."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from export_core.features.why.bisect.report import Bisection

ROOT = Path(__file__).parents[3]


@pytest.mark.matrix
def test_the_release_that_mended_lapack_is_found(jaxexport, monkeypatch):
    monkeypatch.chdir(ROOT)
    cell = "tests.compat.test_linear_algebra.test_cholesky/0.9.2-cpu in 0.9.2 on cpu"
    ended = jaxexport("bisect", cell, "--good", "0.10.0", "--as-of", "2026-11-22", "--json")
    found = msgspec.json.decode(ended.out, type=Bisection)
    assert ended.code == 0
    assert [(each.reader.jaxlib, str(each.verdict)) for each in found.tried] == [("0.9.2", "crash"), ("0.10.0", "pass")]
    assert found.first_bad
    assert found.first_bad.jaxlib == "0.9.2"
    assert "compare/a659757d768587a81d095a9fab5f0c36f8beb218..." in found.commits[1].link, "as jaxlib 0.9.2 says"
