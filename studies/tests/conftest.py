"""Fixtures of the tests of studies: those of all tests, and those of tests that replay."""

pytest_plugins = ["shared_fixtures", "replaying"]
