# SPDX-License-Identifier: GPL-2.0-or-later
"""VFs that their physical function cannot administer: used as they are, and nothing promised that nobody keeps."""

from pathlib import Path

import pytest

from fwlab.model.errors import CannotMeasure
from tests.fakes.fake_host import VIRTIO_VFS
from tests.fakes.host_setting import LAB, SRIOV, VIRTIO_SRIOV, Setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    made = Setting(tmp_path, monkeypatch)
    made.host.virtio_sriov()
    made.file(VIRTIO_SRIOV)
    return made


def test_a_vf_that_nobody_can_administer_is_used_as_it_is(here: Setting) -> None:
    before = here.host.nics()
    here.up("sriov")
    assert here.host.nics() == before
    assert not [call for call in here.host.calls if call.startswith("link set")]
    assert here.links.lost(LAB) is None
    here.host.nic("enp3s0", state="down")
    assert "enp3s0, the physical function of the VF 0000:03:00.1, is down" in here.links.lost(LAB).message
    assert here.links.restore(LAB)
    assert (here.host.nics()["vfs"], here.records) == ({}, [])


def test_a_vf_as_it_is_serves_one_lab_at_a_time(here: Setting) -> None:
    here.up("sriov")
    with pytest.raises(CannotMeasure, match=f"{VIRTIO_VFS['enp2s0'][0]} carries a link of {LAB}"):
        here.up("sriov", "lab04-nftables")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("vlan: 0", "vlan: 7", "sriov.generator-dut.vlan"),
        ("spoof_check: false", "spoof_check: true", "sriov.generator-dut.spoof_check"),
        (
            "    spoof_check: false\n",
            "    trust: true\n",
            "sriov.generator-dut.trust and host.yml: sriov.generator-dut.spoof",
        ),
    ],
)
def test_what_no_driver_would_keep_is_refused(here: Setting, old: str, new: str, named: str) -> None:
    assert old in VIRTIO_SRIOV
    here.file(VIRTIO_SRIOV.replace(old, new, 1))
    error = here.refused("sriov")
    assert error.message.startswith(f"host.yml: {named}")
    assert "the driver of enp2s0 cannot administer VFs: no VLAN, no spoof check" in error.message
    assert error.hint.startswith("in host.yml: vlan 0, trust false, spoof_check false")
    assert error.exit_code == 2


def test_a_vf_that_is_not_listed_beside_others_is_an_error(here: Setting) -> None:
    here.host.sriov()
    del here.host.vfs[3]
    here.file(SRIOV)
    assert here.refused("sriov").message == "enp1s0 does not list its VF 3"
