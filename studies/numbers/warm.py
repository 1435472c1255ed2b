"""What a reader imports before a program that calls LAPACK: readers up to 0.9.2 crash unless linear algebra was traced.

See https://github.com/jax-ml/jax/issues/29610.
"""

import jax
import numpy as np

jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))
