# SPDX-License-Identifier: GPL-2.0-or-later
"""Which images are built when none is named, and what is said if FreeBSD's is left out."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.images import __main__ as command
from fwlab.images import freebsd
from fwlab.images.boxes import LINUX_IMAGES, SourceError, add_boxes, built_boxes
from fwlab.images.build import Builder
from fwlab.images.freebsd import OFFICIAL, chosen_before, default_images, freebsd_image, left_out
from fwlab.images.programs import Subprocesses


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout with a lab on Linux, one on either system, and one on FreeBSD."""
    for name in (freebsd.FREEBSD_URL, freebsd.FREEBSD_SHA256, "FWLAB_DUT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("FWLAB_CACHE", "VAGRANT_HOME"):  # old boxes are removed there
        monkeypatch.setenv(name, str(tmp_path / name))
    for lab, systems in (("lab03-ipset", None), ("lab08-pf", ["freebsd", "linux"]), ("lab13-x", ["freebsd"])):
        (tmp_path / "labs" / lab).mkdir(parents=True)
        needs = {"systems": systems} if systems else {}
        (tmp_path / "labs" / lab / "lab.yml").write_text(json.dumps({"needs": needs}))
    return Project(tmp_path)


def test_who_has_linux_labs_only_downloads_no_freebsd(labs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    linux, every = [*LINUX_IMAGES], [*LINUX_IMAGES, "dut-freebsd"]
    assert default_images(labs, None) == linux
    assert default_images(labs, "lab03-ipset") == linux
    assert default_images(labs, "lab99-none") == linux
    assert default_images(labs, "lab08-pf") == every
    monkeypatch.setenv("FWLAB_DUT", "linux")
    assert default_images(labs, "lab08-pf") == linux
    monkeypatch.setenv(freebsd.FREEBSD_URL, "/image.qcow2")
    assert default_images(labs, None) == every
    monkeypatch.setenv(freebsd.FREEBSD_URL, "none")
    monkeypatch.delenv("FWLAB_DUT")
    assert default_images(labs, "lab08-pf") == linux


def test_an_image_stays_chosen_until_none_is_asked_for(labs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert freebsd_image(labs).url == OFFICIAL
    chosen = {"url": "/a.qcow2.xz", "sha256": "a" * 64}
    add_boxes(labs, {"dut-freebsd": {"box": "b", "freebsd": chosen}, "sink": {"box": "s"}})
    assert freebsd_image(labs).record() == chosen
    assert chosen_before(labs).sha256 == "a" * 64
    assert default_images(labs, None)[-1] == "dut-freebsd"
    monkeypatch.setenv(freebsd.FREEBSD_URL, "none")
    assert freebsd_image(labs) is None
    add_boxes(labs, {}, without=["dut-freebsd"])
    assert built_boxes(labs) == {"sink": {"box": "s"}}


def test_what_works_without_it_is_said_once(labs: Project) -> None:
    assert left_out(labs, "no network") == (
        "dut-freebsd: left out: no network\n"
        "  without it: every lab but lab08-pf (on linux: FWLAB_DUT=linux), lab13-x\n"
        "  next: packer/build dut-freebsd"
    )
    for lab in ("lab08-pf", "lab13-x"):
        shutil.rmtree(labs.labs / lab)
    assert left_out(labs, "no network") is None


@pytest.mark.parametrize("named", [[], ["sink", "dut-freebsd"]], ids=["by default", "by name"])
def test_an_image_that_cannot_be_had_fails_only_those_who_named_it(
    labs: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: list[str],
) -> None:
    def ready_box(builder: Builder, image: str) -> dict[str, str]:
        if image == "dut-freebsd":
            raise SourceError(f"{builder.freebsd.url}: no route", "download it by other means")
        return {"box": f"fwlab-{image}-0", "path": str(tmp_path / image)}

    monkeypatch.setattr(Builder, "ready_box", ready_box)
    monkeypatch.setattr(command, "require_programs", lambda *_: None)
    with ThreadPoolExecutor(1) as pool:
        work = (labs, named, "lab08-pf", Subprocesses(), pool, None)
        if named:
            with pytest.raises(SourceError, match=f"{OFFICIAL}: no route"):
                command._build(*work)
        else:
            command._build(*work)
            assert set(built_boxes(labs)) == {*LINUX_IMAGES}
            assert capsys.readouterr().err == f"{left_out(labs, f'{OFFICIAL}: no route')}\n"
