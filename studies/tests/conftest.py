"""Fixtures of the tests of studies: those of all tests."""

pytest_plugins = ["shared_fixtures"]
