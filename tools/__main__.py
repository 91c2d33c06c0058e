# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tools`: publish runs, renew ranges and pages, and measure how well figures repeat and how long one waits.

The Makefile has a target for most of these commands.
"""

import typer

from fwlab.cli.main import main
from tools.first_hour import first_hour_command
from tools.pages import pages_command
from tools.publish import publish_command
from tools.ranges import ranges_command
from tools.release import release_command
from tools.repeatability import repeatability_command
from tools.site.students import students_site_command
from tools.waits import waits_command

app = typer.Typer(
    help="Publish runs, renew ranges and pages, measure repeatability and waits.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("publish")(publish_command)
app.command("ranges")(ranges_command)
app.command("pages")(pages_command)
app.command("repeatability")(repeatability_command)
app.command("release")(release_command)
app.command("students-site")(students_site_command)
app.command("waits")(waits_command)
app.command("first-hour")(first_hour_command)

if __name__ == "__main__":
    main(app)
