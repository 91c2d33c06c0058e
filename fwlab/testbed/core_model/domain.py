# SPDX-License-Identifier: GPL-2.0-or-later
"""libvirt's description of a machine, with and without the model's plugin. Pure."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

QEMU_NAMESPACE = "http://libvirt.org/schemas/domain/qemu/1.0"
ET.register_namespace("qemu", QEMU_NAMESPACE)
_LINE, _WORD = f"{{{QEMU_NAMESPACE}}}commandline", f"{{{QEMU_NAMESPACE}}}arg"
#: How the plugin's file is called, whatever its key.
NAME = "fwlab-model-"


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
        if line is not None and option.get("value") == "-plugin" and NAME in (value.get("value") or ""):
            line.remove(option)
            line.remove(value)
    return root


def _parsed(xml: str) -> ET.Element:
    return ET.fromstring(xml)  # noqa: S314 - libvirt has written it
