# SPDX-License-Identifier: GPL-2.0-or-later
"""Attaches the model to a running DUT, and takes it off again.

QEMU loads a plugin when it starts. So libvirt saves the DUT and restores it by a description with the plugin: the guest
goes on where it was. Booting with the plugin would take minutes.
"""

import contextlib
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.own_folder import own_folder
from fwlab.host.environment import libvirt_uri, timeout_scale
from fwlab.host.kvm_probe import qemu_version
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.machines import Machines
from fwlab.testbed.qemu_process import domain_of, qemu_of
from fwlab_coresim.build import built_model
from fwlab_coresim.cores import ReferenceCore
from fwlab_coresim.counters import CoreCounters

#: Saving and restoring take a few seconds. After this something is broken (s).
TIMEOUT_S = 180
#: For a login with the model, on a busy host (s). It executes some hundred million instructions.
ANSWER_S = 240
#: The plugin API of these versions is the one that plugin/qemu_plugin_api.h declares. Others were not tried.
QEMU_VERSIONS = ("7.2.",)
_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
ET.register_namespace("qemu", _NAMESPACE)
_LINE, _WORD = f"{{{_NAMESPACE}}}commandline", f"{{{_NAMESPACE}}}arg"
#: How the plugin's file is called, whatever its key.
PREFIX = "fwlab-model-"


@contextlib.contextmanager
def attached(machines: Machines, forwarded: tuple[str, int], core: ReferenceCore) -> Iterator[CoreCounters]:
    """The DUT with a model of this core, while the context is open. Raises CannotMeasure.

    forwarded  the address and port on which the DUT's QEMU forwards SSH
    """
    reject_other_qemu(qemu_version())
    plugin = built_model()
    domain = domain_of(qemu_of(*forwarded))
    ssh = machines.ssh("dut")
    with _folder() as folder:
        files = folder / "counters", folder / "places"
        for file in files:
            file.touch()
            file.chmod(0o666)
        ssh.close()  # a connection that is open would hang in the restored machine
        _restart(domain, folder, lambda xml: with_model(xml, plugin, files, core.words()))
        try:
            _await(ssh, ANSWER_S * timeout_scale())
            yield CoreCounters(*files)
        finally:
            ssh.close()
            _restart(domain, folder, without_model)


def _await(ssh: Ssh, seconds: float) -> None:
    """Wait until a login works. ssh itself gives up earlier on a host that is busy. Raises CannotMeasure."""
    deadline = time.monotonic() + seconds
    while not ssh.answers(seconds):
        if time.monotonic() > deadline:
            raise CannotMeasure("the DUT does not answer with the model attached", "vagrant reload LAB")
        time.sleep(1)


def reject_other_qemu(version: str) -> None:
    """Raise CannotMeasure if the plugin does not fit this QEMU."""
    if not version.startswith(QEMU_VERSIONS):
        fits = ", ".join(f"{one}x" for one in QEMU_VERSIONS)
        raise CannotMeasure(f"the model fits QEMU {fits}, and this is {version}", "leave --model out")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder that QEMU can reach, whatever user it is."""
    with contextlib.ExitStack() as held:
        with write_errors_as(Path(tempfile.gettempdir()), CannotMeasure):
            folder = held.enter_context(own_folder("fwlab-counters-"))
        folder.chmod(0o755)
        yield folder


def _restart(domain: str, folder: Path, edit: Callable[[str], str]) -> None:
    """Save the machine, and restore it by an edited description; if that fails, by its own."""
    state, description = folder / "state", folder / "description.xml"
    try:
        _virsh("save", domain, str(state), "--running")
        before = _virsh("save-image-dumpxml", str(state), "--security-info")
        write_atomically(description, edit(before), error=CannotMeasure)
        _virsh("restore", str(state), "--xml", str(description), "--running")
    except BaseException:  # an interruption, too, must not leave a machine that is saved and off
        if state.exists():
            with contextlib.suppress(CannotMeasure):
                _virsh("restore", str(state), "--running")
        raise
    finally:
        state.unlink(missing_ok=True)


def _virsh(*words: str) -> str:
    argv = ["virsh", "--quiet", "--connect", libvirt_uri(), *words]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMeasure(f"virsh {words[0]}: {error}", "fwlab doctor") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise CannotMeasure(f"virsh {words[0]}: {said}", "vagrant destroy -f LAB; vagrant up LAB")
    return done.stdout


def with_model(xml: str, plugin: Path, files: tuple[Path, Path], words: Sequence[str]) -> str:
    """The description with the plugin, which counts in these files (counters, places). `words`: its parameters."""
    root = _without(_parsed(xml))
    line = root.find(_LINE)
    if line is None:
        line = ET.SubElement(root, _LINE)
    named = [f"{key}={file}" for key, file in zip(("counters", "places"), files, strict=True)]
    # A comma inside a value is doubled, as in all of QEMU's options.
    value = ",".join(word.replace(",", ",,") for word in (str(plugin), *named, *words))
    ET.SubElement(line, _WORD, value="-plugin")
    ET.SubElement(line, _WORD, value=value)
    # AppArmor's profile, which libvirt writes, names the files of the description, and not those of QEMU's arguments.
    for label in root.findall("seclabel[@model='apparmor']"):
        label.clear()
        label.attrib.update(type="none", model="apparmor")
    return ET.tostring(root, encoding="unicode")


def without_model(xml: str) -> str:
    """The description without the plugin, if it has it."""
    return ET.tostring(_without(_parsed(xml)), encoding="unicode")


def _without(root: ET.Element) -> ET.Element:
    line = root.find(_LINE)
    words = list(line) if line is not None else []
    for option, value in pairwise(words):
        if line is not None and option.get("value") == "-plugin" and PREFIX in (value.get("value") or ""):
            line.remove(option)
            line.remove(value)
    return root


def _parsed(xml: str) -> ET.Element:
    return ET.fromstring(xml)  # noqa: S314 - libvirt has written it
