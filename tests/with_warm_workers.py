"""The command `jaxexport` in an interpreter of its own, whose workers are forks: `with_warm_workers.py SOCKET WORDS`.

It starts as any other command does, and may be killed. Only its workers do not import jax; see warm_worker.py.
"""

import sys

from warm_worker import use_warm_workers

from export_core.cli.entry import main

if __name__ == "__main__":
    use_warm_workers(sys.argv.pop(1))
    sys.exit(main())
