"""The recorder of a marked test, and what all recorders of a run share: replayer, second exports, running test.

The first marked test that runs loads this file, and jax with it.
"""

import pytest

from pytest_jaxexport.dead_processes import RunningTest
from pytest_jaxexport.ledger import Ledger
from pytest_jaxexport.marker import Marked
from pytest_jaxexport.options import SECOND_RUN
from pytest_jaxexport.recorder import Recorder, SecondRecorder
from pytest_jaxexport.replayer import Replayer
from pytest_jaxexport.second_export import SEEDS, ForkedExport, SecondExport
from pytest_jaxexport.settings import user_code
from pytest_jaxexport.stash import FLAGS, MARKED, NEXT, REPLAYER, RUNNING, SECOND_EXPORT, SETTINGS, STARTED_WITH


def new_recorder(item: pytest.Item, ledger: Ledger, marked: Marked) -> Recorder:
    """Return a recorder for a test, and begin to replay its goldens and those of the next test in the background."""
    config = item.config
    if (second_run := config.pluginmanager.get_plugin(SECOND_RUN)) is not None:
        return SecondRecorder(item, ledger, marked, config.stash[SETTINGS], second_run.exports)
    if RUNNING not in config.stash:
        config.stash[RUNNING] = RunningTest(config.rootpath)
        config.add_cleanup(config.stash[RUNNING].close)
    config.stash[RUNNING].begin(item.nodeid)
    if REPLAYER not in config.stash:
        replayer = Replayer(config.stash[SETTINGS], user_code(config), config.stash[STARTED_WITH])
        seconds = [SecondExport(config, seed, config.stash.get(FLAGS, {})) for seed in SEEDS]
        seconds.insert(0, ForkedExport(config, config.stash.get(FLAGS, {}), replayer.fork_program))
        config.stash[REPLAYER], config.stash[SECOND_EXPORT] = replayer, seconds
        for close in (replayer.close, *(second.close for second in seconds)):
            config.add_cleanup(close)
    for soon in (item, config.stash[NEXT]):
        if soon is not None and MARKED in soon.stash and not soon.get_closest_marker("skip"):
            config.stash[REPLAYER].begin(soon, soon.stash[MARKED][1])
    return Recorder(item, ledger, marked, config.stash[SETTINGS], config.stash[REPLAYER], config.stash[SECOND_EXPORT])
