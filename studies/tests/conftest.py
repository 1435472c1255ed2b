"""The fixtures for the tests of studies: the fixtures that all tests share, and the fixtures for replays."""

pytest_plugins = ["shared_fixtures", "replaying"]
