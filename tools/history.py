# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether what made a result can be checked out: its commit and its trees are in git's history."""

import subprocess
from collections.abc import Mapping

from fwlab.checkout.project import Project
from fwlab.model.results import Conditions

#: Of a commit's name, in results.
DIGITS = 12


class History:
    """The commits that lead to HEAD."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._commits = _git(project, "rev-list", "HEAD").split()

    def fault(self, commit: str, trees: Mapping[str, str]) -> str | None:
        """Why this is not in the history: a commit (with a plus sign for changes), and its trees by path."""
        if commit.endswith("+"):
            return f"files differed from the commit {commit[:-1]}"
        whole = next((one for one in self._commits if len(commit) >= DIGITS and one.startswith(commit)), None)
        if whole is None:
            return f"the commit {commit} is not in the history"
        for path, tree in trees.items():
            if _git(self._project, "rev-parse", f"{whole}:{path}").strip() != tree:
                return f"{path} has another tree in the commit {commit}"
        return None


def untraceable(project: Project, conditions: Conditions) -> str | None:
    """Why the commit or the trees of a run are not in the history; None if they are."""
    return History(project).fault(conditions.commit, conditions.trees)


def _git(project: Project, *words: str) -> str:
    """What git prints; nothing if it fails."""
    done = subprocess.run(["git", "-C", str(project.root), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
