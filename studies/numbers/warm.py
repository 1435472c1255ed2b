"""The module that a reader imports before a program with LAPACK calls: up to 0.9.2 it would crash otherwise.

See https://github.com/jax-ml/jax/issues/29610.
"""

import jax
import numpy as np

jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
