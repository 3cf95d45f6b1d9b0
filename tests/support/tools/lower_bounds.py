"""Print the lowest version of each dependency that pyproject.toml allows, as constraints for pip.

Those of the package itself and of clusters: what JupyterLab and the tools of developers need depends on their own versions.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
EXTRAS = ("cluster",)
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)$")


def lower_bounds(text: str) -> list[str]:
    """The constraints `name==version` of a pyproject.toml.

    Raises:
        ValueError: a requirement has no lower bound.
    """
    project = tomllib.loads(text)["project"]
    requirements = [*project["dependencies"], *[each for extra in EXTRAS for each in project["optional-dependencies"][extra]]]
    bounds = []
    for requirement in requirements:
        match = REQUIREMENT.match(requirement)
        if match is None:
            raise ValueError(f"required 'name>=version', got {requirement!r}")
        bounds.append(f"{match['name']}=={match['version']}")
    return bounds


if __name__ == "__main__":
    sys.stdout.write("\n".join(lower_bounds(PROJECT.read_text())) + "\n")
