# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the labs' images unless they are built, and add them to Vagrant.

A box is kept under the hash of everything that goes into it: a second run takes seconds, and an edited provision
script rebuilds the images that use it. At the end .fwlab/images.json lists the boxes for the Vagrantfile and fwlab.

Environment: FWLAB_CACHE (where boxes are kept), FWLAB_BASE_URL and FWLAB_BASE_CHECKSUM (an official Debian 12 cloud
image to start from, instead of a base made from packages: a path or an address, and its SHA-512 or SHA-256),
FWLAB_TREX_URL and FWLAB_TREX_SHA256 (TRex's tarball for the generator, a path or an address; none: without it again),
FWLAB_FREEBSD_URL and FWLAB_FREEBSD_SHA256 (the image for dut-freebsd, a path or an address, .xz or not; the checksum is
looked up in CHECKSUM.SHA256 in its folder if it is not given; default: FreeBSD's own; none: leave it out),
FWLAB_KERNEL (full: Debian's full kernel, which has the drivers of virtual functions; default: its cloud kernel),
FWLAB_ACCEL (tcg or kvm, instead of trying KVM). With --import nothing is built, but copied from a folder that --export
wrote on another host. The packer on the PATH is used: Debian 12's, or 1.7 and later. With --prepare it is not run: all
that it reads of an image is put into a folder, for who wants to call it by hand.
"""

import argparse
import errno
import os
import shlex
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project, find_project, lab_named
from fwlab.host.environment import accelerator, cache_directory
from fwlab.host.published_file import NONE
from fwlab.images.box_transfer import export_boxes, import_boxes, require_new
from fwlab.images.boxes import IMAGES, MAKERS, Boxes, add_boxes, built_boxes
from fwlab.images.build import Builder, full_kernel_wanted
from fwlab.images.disk_use import remove_all_but, remove_old, vagrant_boxes
from fwlab.images.makers_images import chosen_images, default_images, left_out, source_of
from fwlab.images.programs import Subprocesses, require_programs
from fwlab.images.sources import cloud_image, trex_tarball
from fwlab.model.errors import EXIT_FAIL, FwlabError, SourceError

EXIT_INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def say(text: str) -> None:
    """One line of progress on standard error, in one write: the images are built in threads."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def add_to_vagrant(entry: dict[str, Any], programs: Subprocesses) -> None:
    """Add a box unless Vagrant has one of that name; the name contains the content key. Raises BuildError."""
    if any((vagrant_boxes() / entry["box"]).rglob("box.img")):
        return
    say(f"{entry['box']}: adding it to Vagrant")
    command = ["vagrant", "box", "add", "--force", "--provider", "libvirt", "--name", entry["box"], entry["path"]]
    log = Path(entry["path"]).parent.parent / "logs" / "vagrant.log"
    log.parent.mkdir(parents=True, exist_ok=True)  # a cache that was copied here has none
    programs.run(command, log, entry["box"], {"VAGRANT_CHECKPOINT_DISABLE": "1"})


def main() -> int:
    """Exit 0 done, 1 something failed, 2 bad usage, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="packer/build", description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("images", nargs="*", metavar="IMAGE", help=f"of {', '.join(IMAGES)}")
    parser.add_argument("--lab", help="without an IMAGE: also what the machines of this lab need beyond the others'")
    parser.add_argument("--no-vagrant", action="store_true", help="build only, add nothing to Vagrant")
    parser.add_argument(
        "--prepare", type=Path, metavar="FOLDER", help="put what Packer reads of one IMAGE there, and print its command"
    )
    parser.add_argument(
        "--prune", action="store_true", help="then remove what this checkout does not need: old boxes, bases, downloads"
    )
    parser.add_argument(
        "--export", type=Path, metavar="FOLDER", help="copy the boxes and saved states into a new folder"
    )
    parser.add_argument("--checkout", type=Path, default=Path(__file__), help=argparse.SUPPRESS)
    parser.add_argument("--import", type=Path, metavar="FOLDER", dest="imported", help="take them from there: no build")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.images) - set(IMAGES)):
        parser.error(f"no image named {', '.join(unknown)}: there are {', '.join(IMAGES)}")
    if arguments.images and (arguments.export or arguments.imported):
        parser.error("--export and --import are for all boxes: name no image")
    if arguments.prepare is not None and len(arguments.images) != 1:
        parser.error("--prepare is for one box: name one image")
    for number in SIGNALS:  # also where a shell had SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    programs = Subprocesses()
    pool = ThreadPoolExecutor(max_workers=max(1, min(3, os.cpu_count() or 1)))
    try:
        # Both now, not after minutes.
        project = find_project(arguments.checkout)
        lab = lab_named(project, arguments.lab) if arguments.lab else None
        for new in filter(None, (arguments.export, arguments.prepare)):
            require_new(new)
        if arguments.prepare is not None:
            builder = _builder(project, arguments.images, programs)
            print(shlex.join(builder.prepare(arguments.images[0], arguments.prepare.absolute())))
            return 0
        vagrant = None if arguments.no_vagrant else programs
        if arguments.imported is not None:
            boxes = _import(project, arguments.imported, vagrant)
        else:
            boxes = _build(project, arguments.images, lab, programs, pool, vagrant)
        if arguments.prune:
            remove_all_but(cache_directory(), built_boxes(project))
        if arguments.export is not None:
            export_boxes(cache_directory(), boxes, arguments.export.absolute(), say)
        return 0
    except FwlabError as error:
        message, status = str(error), error.exit_code
    except OSError as error:
        hint = "\n  next: make room (3 GiB), or set FWLAB_CACHE to a directory with more"
        full = hint if error.errno == errno.ENOSPC else ""
        message, status = f"{error.filename or cache_directory()}: {error.strerror}{full}", EXIT_FAIL
    except KeyboardInterrupt:
        message, status = "interrupted; nothing half-built was kept\n  next: run it again to go on", EXIT_INTERRUPTED
    for number in SIGNALS:  # a second Ctrl-C: it ends within seconds, and nothing stays
        signal.signal(number, signal.SIG_IGN)
    pool.shutdown(wait=False, cancel_futures=True)
    programs.stop_all()
    pool.shutdown(wait=True)
    say(f"packer/build: {message}")
    return status


def _build(
    project: Project,
    named: list[str],
    lab: str | None,
    programs: Subprocesses,
    pool: ThreadPoolExecutor,
    vagrant: Subprocesses | None,
) -> Boxes:
    """Build what is not in the cache. `vagrant`: runs it to add the boxes; None: they are not added."""
    images = named or default_images(project, lab)
    if vagrant is not None:
        require_programs("vagrant")
    builder = _builder(project, images, programs)
    absent = [box for box in MAKERS if box not in builder.makers]
    for box in absent:
        if box in named:
            variable = source_of(MAKERS[box]).URL_NAME
            raise SourceError(f"{variable}={NONE} leaves {box} out", f"unset {variable}")
    jobs = {image: pool.submit(builder.ready_box, image) for image in images}
    lacking: dict[str, str] = {}
    boxes = {}
    for image, job in jobs.items():
        try:
            boxes[image] = job.result()
        except SourceError as error:
            if image in named or image not in MAKERS:
                raise
            lacking[image] = error.message
    _use(project, boxes, vagrant, without=absent)
    for box, why in lacking.items():
        if text := left_out(project, box, why):
            say(text)
    return boxes


def _builder(project: Project, images: list[str], programs: Subprocesses) -> Builder:
    """What builds these images as the environment says. Raises FwlabError if a variable is wrong."""
    accelerator()  # now, not after minutes
    cache, base, makers = cache_directory(), cloud_image(), chosen_images(project)
    tarball = trex_tarball(project, cache, say) if "generator" in images else None
    return Builder(project, cache, programs, say, tarball, base, makers, full_kernel_wanted(base))


def _import(project: Project, folder: Path, vagrant: Subprocesses | None) -> Boxes:
    """Take the boxes of this checkout from a folder."""
    base = cloud_image()
    if vagrant is not None:
        require_programs("vagrant")
    boxes = import_boxes(project, cache_directory(), folder, base, full=full_kernel_wanted(base), say=say)
    _use(project, boxes, vagrant, without=[*MAKERS])
    return boxes


def _use(project: Project, boxes: Boxes, vagrant: Subprocesses | None, without: list[str]) -> None:
    """Make these the boxes of this checkout, in place of those that it had."""
    if vagrant is not None:
        for box in boxes.values():
            add_to_vagrant(box, vagrant)
    add_boxes(project, boxes, without=[image for image in without if image not in boxes])
    remove_old(cache_directory(), boxes)


if __name__ == "__main__":
    sys.exit(main())
