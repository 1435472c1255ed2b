"""The message for a golden that a reader outside the window refuses: it says until when the promise held."""

from making import result

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from pytest_jaxexport.checking import outcome_with_window

REFUSED = "JaxRuntimeError: INVALID_ARGUMENT: Failed to deserialize StableHLO"


def test_a_refusal_outside_the_window_is_shown_with_the_window():
    """Without the window, the refusal of a golden by a newer jaxlib looks like a failure of the plugin."""
    outside = result(Verdict.REFUSED, Judgement.OUTSIDE, stage=Stage.MODULE, message=REFUSED, promised=False)
    text = outcome_with_window(outside)
    assert REFUSED in text
    assert "; backward: reader built " in text
    assert " the writer; outside the window: promised to jaxlibs built until " in text
    broken = result(Verdict.REFUSED, Judgement.BROKEN, stage=Stage.MODULE, message=REFUSED)
    assert "outside the window" not in outcome_with_window(broken)
