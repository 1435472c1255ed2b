"""The Python module that a reader imports before a program with LAPACK calls.

Up to 0.9.2 the program would crash without it: https://github.com/jax-ml/jax/issues/29610.
"""

import jax
import numpy as np

jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
