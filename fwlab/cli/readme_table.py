# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of labs in README.md, from their lab.yml: labs are found, so nobody keeps a list of them by hand.

python -m fwlab.cli.readme_table      rewrites README.md (`make readme`)
"""

from __future__ import annotations

import sys

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project, find_project, is_measured, lab_ids, load_lab
from fwlab.model.errors import EXIT_PASS, BadInput, FwlabError

BEGIN = "<!-- labs:begin -->"
END = "<!-- labs:end -->"
PAGE = "README.md"


def labs_table(project: Project) -> str:
    """A markdown table, one row a lab in the order of their numbers. Raises BadInput for a faulty lab.yml."""
    rows = ["| lab | question | minutes | sources |", "|---|---|---:|---|"]
    for lab_id in lab_ids(project):
        lab = load_lab(project, lab_id)
        title = lab.title.replace("|", "\\|")
        title += "" if is_measured(project, lab_id) else " (not measured yet: no ranges, no marks)"
        rows.append(f"| [{lab.id}](labs/{lab.id}/README.md) | {title} | {lab.minutes} | {', '.join(lab.sources)} |")
    return "\n".join(rows)


def with_table(page: str, table: str) -> str:
    """`page` with what lies between the two markers replaced. Raises BadInput unless each is there once."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise BadInput(f"{PAGE}: needs {BEGIN} and then {END}, each once", "put both where the table of labs belongs")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main() -> int:
    """Rewrite README.md where it is stale; say so. Returns the exit code."""
    try:
        project = find_project()
        path = project.root / PAGE
        try:
            page = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{PAGE}: cannot be read: {error.strerror}", f"git checkout {PAGE}") from error
        fresh = with_table(page, labs_table(project))
        if fresh != page:
            write_atomically(path, fresh)
            print(f"{PAGE}: table of labs renewed")
    except FwlabError as error:
        print(f"labs_table: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
