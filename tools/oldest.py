"""Print pip constraints: the oldest version of each requirement that pyproject.toml allows."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
requirements = [requirement for group in groups for requirement in group]
bounds = dict(re.findall(r"^([\w-]+)>=([\w.]+)", "\n".join(requirements), re.MULTILINE))
sys.stdout.writelines(f"{name}=={version}\n" for name, version in sorted(bounds.items()))
