"""What happens to goldens in the coming months, and which cells of a run contradict their forecast."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={"forecast": "forecast_command:forecast"},
    schemas={
        "forecast": (
            "forecast:DaysAhead",
            "what `jaxexport forecast --json` prints: the days ahead on which something happens to the goldens",
        )
    },
    findings="wrong:wrong_forecasts",
    picture="windows_svg:windows_picture",
)
