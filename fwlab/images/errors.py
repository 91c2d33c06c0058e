# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong while images are built."""

from fwlab.model.errors import EXIT_FAIL, EXIT_USAGE, FwlabError


class BuildError(FwlabError):
    """An image cannot be built. `message` says what is wrong, `hint` the next step."""

    exit_code = EXIT_FAIL


class SourceError(BuildError):
    """The file that an image was to be made from cannot be had, or is the wrong one. Nothing was built."""

    exit_code = EXIT_USAGE
