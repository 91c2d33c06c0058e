# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's kernel as reports show it: whether FreeBSD's makers built it."""

from typing import Any

import pytest

from fwlab.model.results import DutFacts
from fwlab.report import formatting


@pytest.mark.parametrize(
    ("system", "image", "shown"),
    [
        ("freebsd", {"kernel_package": "FreeBSD 15.1-RELEASE GENERIC"}, "k"),
        ("freebsd", {"kernel_package": "FreeBSD 15.1-RELEASE SMALL"}, "k (built by hand: SMALL)"),
        ("freebsd", {}, "k"),
        ("linux", {"kernel_package": "6.1.192-2"}, "k"),
    ],
)
def test_a_kernel_that_is_not_its_makers_is_named(system: str, image: dict[str, Any], shown: str) -> None:
    dut = DutFacts(kernel="k", cmdline="", clocksource="", image=image, system=system)
    assert formatting.kernel(dut) == shown
