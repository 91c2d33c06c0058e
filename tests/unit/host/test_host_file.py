# SPDX-License-Identifier: GPL-2.0-or-later
"""host.yml: what is wrong with it, by field."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fwlab.checkout.project import validated
from fwlab.model.errors import BadInput
from fwlab.testbed.host_file import HostFile, SriovLink
from tests import ROOT
from tests.fakes.fake_host import VFS
from tests.fakes.guide_pages import blocks
from tests.fakes.host_setting import SRIOV, TOPOLOGY, Setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(tmp_path, monkeypatch)


BAD_FILES = {
    "": "host.yml: the fields are missing",
    "macvtap: {}\n": "host.yml: macvtap.generator-dut: this field is missing",
    "macvtap:\n  wan: { nic: dummy }\n": (
        "host.yml: macvtap.wan: there is no such link; there are: generator-dut, dut-sink"
    ),
    "macvtap:\n  generator-dut: { nic: dummy, mode: vepa }\n": (
        "host.yml: macvtap.generator-dut.mode: there is no such field"
    ),
    "macvtap:\n  generator-dut: { nic: ../etc }\n": (
        "host.yml: macvtap.generator-dut.nic: ../etc does not have the form"
    ),
    "macvtap:\n  generator-dut: { nic: eth7 }\n": (
        "host.yml: macvtap.generator-dut.nic: eth7: there is no such NIC; there are: enp1s0, enp9s0, lo"
    ),
    "macvtap: [\n": "host.yml:2: not YAML",
}
BAD_SRIOV = [
    ((VFS[0], "01:10.0"), "host.yml: sriov.generator-dut.ends.generator: 01:10.0 does not have the form"),
    ((VFS[1], VFS[0]), f"host.yml: the VF {VFS[0]} is named more than once; each end of a link needs its own"),
    ((VFS[1], "0000:09:00.0"), "ends.dut: 0000:09:00.0: there is no such PCI device on this host"),
    ((VFS[1], "0000:01:00.0"), "0000:01:00.0 is no virtual function of a NIC that this host can see"),
    (("vlan: 101", "vlan: 4095"), "host.yml: sriov.generator-dut.vlan: Input should be less than or equal to 4094"),
    (("generator: ", "sink: "), "host.yml: sriov.generator-dut.ends: must name generator and dut"),
    (("trust: true", "trusted: true"), "host.yml: sriov.generator-dut.trusted: there is no such field"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES.items())
def test_a_wrong_host_file_names_the_field(here: Setting, text: str, message: str) -> None:
    here.host.sriov()
    here.file(text)
    error = here.refused("macvtap")
    assert message in error.message
    assert error.exit_code == 2
    assert "host.yml" in error.hint


@pytest.mark.parametrize(("change", "message"), BAD_SRIOV)
def test_a_wrong_vf_names_the_field(here: Setting, change: tuple[str, str], message: str) -> None:
    here.host.sriov()
    assert change[0] in SRIOV
    here.file(SRIOV.replace(*change, 1))
    error = here.refused("sriov")
    assert message in error.message
    assert isinstance(error, BadInput)


def test_without_a_host_file_the_command_that_drafts_one_is_named(here: Setting) -> None:
    error = here.refused("macvtap")
    assert error.message == "host.yml: there is none; it says which NICs of this host the links may use"
    assert error.hint == "fwlab doctor --draft-host-file"


def test_the_guides_example_is_valid() -> None:
    [example] = [block.body for block in blocks(ROOT / "guides" / "links.md") if block.body.startswith("macvtap:")]
    file = validated(yaml.safe_load(example), "host.yml", HostFile)
    assert (set(file.macvtap), set(file.sriov)) == (set(TOPOLOGY.links), set(TOPOLOGY.links))
    defaults = SriovLink(ends=file.sriov["generator-dut"].ends)
    assert (defaults.vlan, defaults.trust, defaults.spoof_check) == (0, False, True)
