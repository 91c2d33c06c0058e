# SPDX-License-Identifier: GPL-2.0-or-later
"""host.yml: what is wrong with it, by field."""

from pathlib import Path

import pytest
import yaml

from fwlab.checkout.project import validated
from fwlab.model.errors import BadInput
from fwlab.testbed.host_file import HostFile, SriovLink
from tests import ROOT
from tests.fakes.fake_host import VFS
from tests.fakes.guide_pages import blocks
from tests.fakes.host_setting import MACVTAP, SRIOV, TOPOLOGY, Setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(tmp_path, monkeypatch)


SRIOV_LINK = "host.yml: sriov.generator-dut"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "host.yml: the fields are missing"),
        ("macvtap: {}\n", "host.yml: macvtap.generator-dut: this field is missing"),
        (
            "macvtap:\n  wan: { nic: dummy }\n",
            "host.yml: macvtap.wan: there is no such link; there are: generator-dut, dut-sink",
        ),
        (MACVTAP.replace("nic", "mode: vepa, nic", 1), "host.yml: macvtap.generator-dut.mode: there is no such field"),
        (MACVTAP.replace("dummy", "../etc"), "host.yml: macvtap.generator-dut.nic: ../etc does not have the form"),
        (
            MACVTAP.replace("dummy", "eth7"),
            "host.yml: macvtap.generator-dut.nic: eth7: there is no such NIC; there are: enp1s0, enp9s0, lo",
        ),
        ("macvtap: [\n", "host.yml:2: not YAML"),
        (SRIOV.replace(VFS[0], "01:10.0"), f"{SRIOV_LINK}.ends.generator: 01:10.0 does not have the form"),
        (SRIOV.replace(VFS[1], VFS[0]), f"host.yml: the VF {VFS[0]} is named more than once"),
        (
            SRIOV.replace(VFS[1], "0000:09:00.0"),
            f"{SRIOV_LINK}.ends.dut: 0000:09:00.0: there is no such PCI device on this host",
        ),
        (
            SRIOV.replace(VFS[1], "0000:01:00.0"),
            f"{SRIOV_LINK}.ends.dut: 0000:01:00.0 is no virtual function of a NIC that this host can see",
        ),
        (SRIOV.replace("101", "4095"), f"{SRIOV_LINK}.vlan: Input should be less than or equal to 4094"),
        (SRIOV.replace("generator: ", "sink: "), f"{SRIOV_LINK}.ends: must name generator and dut"),
        (SRIOV.replace("trust:", "trusted:"), f"{SRIOV_LINK}.trusted: there is no such field"),
    ],
)
def test_a_wrong_host_file_names_the_field(here: Setting, text: str, message: str) -> None:
    here.host.sriov()
    here.file(text)
    error = here.refused("sriov" if text.startswith("sriov") else "macvtap")
    assert error.message.startswith(message)
    assert isinstance(error, BadInput)
    assert "host.yml" in error.hint


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
