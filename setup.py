# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts into a wheel what `fwlab init` makes folders from. The rest of the build is declared in pyproject.toml."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

TOP = Path(__file__).resolve().parent


class BuildWithFiles(build_py):
    """Copies the files from this checkout, but for an editable installation, which has the checkout."""

    def run(self) -> None:
        """Build the package, then add the files."""
        super().run()
        if self.editable_mode:
            return
        sys.path.insert(0, str(TOP))
        from fwlab.checkout.project import Project
        from fwlab.grading.student_bundle import PACKED, pack

        folder = Path(self.build_lib) / PACKED.relative_to(TOP)
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier build, which may have had other labs
        pack(Project(TOP), folder)


setup(cmdclass={"build_py": BuildWithFiles})
