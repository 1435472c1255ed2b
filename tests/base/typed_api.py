"""Uses of public names, which mypy checks and nothing runs. A needless `type: ignore` is an error of mypy too."""

import export_core
import export_core.policy
import export_core.releases
import export_core.run
from export_core.base.errors import ExportCompatError

ERRORS: tuple[type[ExportCompatError], ...] = (
    *(export_core.ExportCompatError, export_core.ArtifactError, export_core.ReleaseError, export_core.PlatformError),
    *(export_core.KeywordError, export_core.ExportError, export_core.GoldenError, export_core.PolicyError),
)
MISSPELLED = (
    export_core.chekc,  # type: ignore[attr-defined]
    export_core.policy.find_polcy,  # type: ignore[attr-defined]
    export_core.releases.promis,  # type: ignore[attr-defined]
    export_core.run.red_run,  # type: ignore[attr-defined]
)
