"""What becomes of goldens in the coming months: promises that end, releases that leave a window."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"forecast": "forecast_command:forecast"},
    schemas={
        "forecast": (
            "forecast:Forecast",
            "what `jaxexport forecast --json` prints: the days ahead on which something happens to the goldens",
        )
    },
    picture="windows_svg:windows_picture",
)
