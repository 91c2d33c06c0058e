# SPDX-License-Identifier: GPL-2.0-or-later
"""The program behind provision/host/links."""

import sys

from fwlab.checkout.project import find_project, lab_ids, load_topology
from fwlab.model.errors import EXIT_PASS, EXIT_USAGE, BadInput, FwlabError
from fwlab.testbed.choices import requested_kinds
from fwlab.testbed.host_links.prepare import SCRIPT, HostLinks, kinds_from

USAGE = f"""usage: {SCRIPT} up LAB [LINK=KIND ...]   do on this host what the links of a lab's machines need
       {SCRIPT} restore [LAB]            undo it, for one lab or for all of this checkout
       {SCRIPT} status                   name the labs for which this host is changed
"""


def main(arguments: list[str], links: HostLinks | None = None) -> int:
    """Exit code: 0 done, 2 wrong arguments or a wrong host.yml, 3 this host cannot carry the links."""
    match arguments:
        case ["up", lab, *words]:
            links = links or _here()
            _reject_unknown(links, lab)
            usual = requested_kinds({name: link.kind for name, link in links.topology.links.items()})
            links.prepare(lab, kinds_from(words, links.topology, usual))
        case ["restore", *labs] if len(labs) <= 1:
            links = links or _here()
            for lab in labs or links.labs():
                _reject_unknown(links, lab)
                if links.restore(lab):
                    sys.stdout.write(f"{lab}: this host is as it was\n")
        case ["status"]:
            links = links or _here()
            for lab in links.labs():
                lost = links.lost(lab)
                sys.stdout.write(f"{lab}: this host carries its links{f'; {lost.message}' if lost else ''}\n")
        case _:
            sys.stderr.write(USAGE)
            return EXIT_USAGE
    return EXIT_PASS


def _here() -> HostLinks:
    project = find_project()
    return HostLinks(project, load_topology(project))


def _reject_unknown(links: HostLinks, lab: str) -> None:
    there = lab_ids(links.project)
    if lab not in there:
        raise BadInput(f"unknown lab {lab}; there are: {', '.join(there) or 'none'}", "fwlab list")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FwlabError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
