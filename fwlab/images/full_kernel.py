# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes with Debian's full kernel, which has the drivers of virtual functions, instead of its cloud kernel.

Figures of the virtual testbed belong to a kernel. So the boxes keep the cloud kernel
unless somebody asks for the other.
"""

import os
import shutil
from pathlib import Path

from fwlab.images.cloud_image import CloudImage
from fwlab.images.errors import BuildError
from fwlab.model.errors import BadInput

VARIABLE = "FWLAB_KERNEL"
CLOUD, FULL = "linux-image-cloud-amd64", "linux-image-amd64"
#: What the images with the full kernel have in addition, relative to the checkout.
SCRIPTS = "packer/full-kernel"


def full_kernel_wanted(base: CloudImage | None) -> bool:
    """Whether $FWLAB_KERNEL asks for it. Raises BadInput."""
    match os.environ.get(VARIABLE, ""):
        case "" | "cloud":
            return False
        case "full" if base is None:
            return True
        case "full":
            message = f"{VARIABLE}=full: a cloud image brings its own kernel"
            raise BadInput(message, f"unset {VARIABLE}, or FWLAB_BASE_URL and FWLAB_BASE_CHECKSUM")
        case other:
            raise BadInput(f"{VARIABLE}={other}: must be cloud or full", f"unset {VARIABLE}")


def put_full_kernel(root: Path, provision: Path) -> None:
    """Change a copy of provision/ so that images made from it have the full kernel. Raises BuildError."""
    packages = provision / "common" / "packages.txt"
    text = packages.read_text()
    if CLOUD not in text.splitlines():
        raise BuildError(f"provision/common/packages.txt: {CLOUD} is not in it", "git diff provision/common")
    packages.write_text(text.replace(f"{CLOUD}\n", f"{FULL}\n"))
    for script in sorted((root / SCRIPTS).glob("*.sh")):
        shutil.copy2(script, provision / "common")


def base_builder(root: Path, image: str, work: Path) -> Path:
    """packer/base/build in a copy of what it reads, for bases with the full kernel."""
    copy = work / "checkout"
    shutil.copytree(root / "packer" / "base", copy / "packer" / "base")
    (copy / "provision").mkdir()
    shutil.copy2(root / "provision" / "run", copy / "provision")
    for name in ("common", image):
        shutil.copytree(root / "provision" / name, copy / "provision" / name)
    put_full_kernel(root, copy / "provision")
    return copy / "packer" / "base" / "build"
