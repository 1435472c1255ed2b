"""The fixtures of the tests of studies: those that all tests share, and those for replays."""

pytest_plugins = ["shared_fixtures", "replaying"]
