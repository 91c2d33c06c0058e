# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab doctor`: the programs that build boxes are required until there are boxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.cli import doctor


@pytest.mark.parametrize("boxes_built", [True, False])
def test_packer_is_required_until_the_boxes_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes_built: bool
) -> None:
    monkeypatch.setattr(doctor, "PROGRAMS", ("packer-of-no-host", "vagrant-of-no-host"))
    monkeypatch.setattr(doctor, "BUILDING", ("packer-of-no-host",))
    monkeypatch.setenv("PATH", str(tmp_path))
    packer, vagrant = doctor.programs(boxes_built=boxes_built)
    assert (packer.ok, vagrant.ok) == (False, False)
    assert (packer.required, vagrant.required) == (not boxes_built, True)
