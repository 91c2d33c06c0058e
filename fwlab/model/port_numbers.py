# SPDX-License-Identifier: GPL-2.0-or-later
"""Each lab has its own ports on this host, and each checkout may shift them."""

import os

from fwlab.model.errors import BadInput


def port_number(base: int, per_lab: int, lab_number: int, offset: int) -> int:
    """A port by the fields of topology.yml, shifted by $FWLAB_PORT_OFFSET. Raises BadInput."""
    wanted = os.environ.get("FWLAB_PORT_OFFSET") or "0"
    try:
        shift = int(wanted)
    except ValueError as error:
        message = f"FWLAB_PORT_OFFSET={wanted} is not a whole number"
        raise BadInput(message, "export FWLAB_PORT_OFFSET=100") from error
    return base + per_lab * lab_number + offset + shift
