# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong while images are built."""

from fwlab.model.errors import EXIT_FAIL, FwlabError


class BuildError(FwlabError):
    """An image cannot be built. `message` says what is wrong, `hint` the next step."""

    exit_code = EXIT_FAIL
