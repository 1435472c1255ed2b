"""What becomes of goldens in the coming months: promises that end, releases that leave a window."""

from export_core.base.feature import Feature

FEATURE = Feature(
    commands={
        "forecast": "forecast_command:forecast",
    },
    picture="windows_svg:windows_picture",
)
