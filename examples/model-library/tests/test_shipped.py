"""What is shipped has a golden: its artifact, inputs, outputs and writer are in golden/."""

import numpy as np
import pytest
import tiny_models

flowers = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
tokens = np.sin(np.arange(40, dtype=np.float32)).reshape(5, 8)


@pytest.mark.export_compat(symbolic_shapes="n, 8", platforms=["cpu", "cuda"])
def test_classify(export_golden):
    export_golden(tiny_models.classify, flowers).also(flowers[:1])


@pytest.mark.export_compat(vjp_order=1)  # users fine-tune what is before it
def test_encode(export_golden):
    export_golden(tiny_models.encode, tokens)
