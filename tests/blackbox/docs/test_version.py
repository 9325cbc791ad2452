"""A release has one version, and each of the places that release/versions.py lists has it.

server/test_info_section.py tests the version in MODULE LIST and INFO.
"""

import versions
from harness.paths import ROOT


def test_all_places_of_a_package_have_its_version() -> None:
    assert versions.disagreements(ROOT) == []
