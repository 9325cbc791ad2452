"""A project of Django with tasks, for the tests."""
