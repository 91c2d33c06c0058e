# SPDX-License-Identifier: GPL-2.0-or-later
"""What Vagrant's plug-in (provision/vagrant) calls: python -m fwlab.machines COMMAND [ARGUMENT ...].

plan [LAB ...]                 print the plan of these labs, or of all, as JSON
prepare [--restart] NAME ...   check and make what these machines need before they start
restore NAME BOX               start a new machine from a saved state, and record it; prints whether that was done
save NAME                      save the state of a machine that has booted; prints the same
record NAME BOX                record what libvirt has of a machine, and restore the host once its lab has none
"""

import json
import sys
from pathlib import Path

from fwlab.machines.plan import Plan
from fwlab.model.errors import EXIT_UNMEASURED, EXIT_USAGE, FwlabError

#: 128 + SIGINT, as in shells.
EXIT_INTERRUPTED = 130


def main(words: list[str]) -> int:
    """Run a command in the checkout of the working directory. Returns the exit code. Raises FwlabError."""
    plan = Plan(Path.cwd())
    match words:
        case ["plan", *labs]:
            from fwlab.machines.seed import make_key

            make_key(plan)
            plan.settle_ports()
            print(json.dumps(plan.planned(labs)))
        case ["prepare", *names]:
            from fwlab.machines.prepare import prepare

            restart = names[:1] == ["--restart"]
            prepare(plan, names[restart:], restart=restart)
        case ["restore", name, box]:
            from fwlab.machines.record import update
            from fwlab.machines.saved import SavedMachine

            saved = SavedMachine(plan.machine(name))
            done = saved.restore()
            try:
                update(plan.machine(name), box)
            except FwlabError as error:
                saved.warnings.append(str(error))
            print(json.dumps({"done": done, "warnings": saved.warnings}))
        case ["save", name]:
            from fwlab.machines.saved import SavedMachine

            saved = SavedMachine(plan.machine(name))
            print(json.dumps({"done": saved.save(), "warnings": saved.warnings}))
        case ["record", name, box]:
            from fwlab.machines.prepare import restore_links
            from fwlab.machines.record import update

            machine = plan.machine(name)
            if not update(machine, box):
                restore_links(plan, machine.lab.id)
        case _:
            print(__doc__, file=sys.stderr)
            return EXIT_USAGE
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FwlabError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # Vagrant gets it, too, and undoes what it began
        print("interrupted\n  next: the same command again", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        print(f"{error}\n  next: fwlab doctor", file=sys.stderr)
        sys.exit(EXIT_UNMEASURED)
