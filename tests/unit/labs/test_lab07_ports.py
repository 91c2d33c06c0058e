# SPDX-License-Identifier: GPL-2.0-or-later
"""lab07's ex6: flows and ports, by the arithmetic that the page asks for."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from tests.checkout import lab_named

LAB = lab_named("lab07-stateless")
#: Hosts that have the calls, in equal parts (ports.py).
CUSTOMERS = 12
#: What one address may hold where flows are spread by chance: four standard deviations of a quarter of 3200 are 98.
FULL = 0.9


def calls() -> tuple[int, int]:
    """The least and the most that a seed draws."""
    base, drawn = int(LAB.traffic["nat"].tunables["calls"]), LAB.drawn["calls"].values
    return base + int(drawn[0]), base + int(drawn[-1])


def pool() -> tuple[int, int]:
    """Addresses, and ports of each."""
    translated = LAB.traffic["nat"].translated
    assert translated is not None
    low, high = translated.port_range
    return IPv4Network(translated.to).num_addresses, high - low + 1


def test_all_addresses_are_needed_and_enough() -> None:
    (least, most), (addresses, ports) = calls(), pool()
    assert least > 1.01 * (addresses - 1) * ports
    assert most / addresses + 4 * (most * 3 / 16) ** 0.5 < FULL * ports


@pytest.mark.parametrize("count", calls())
def test_a_customer_more_than_the_mean_is_too_many_for_an_address(count: int) -> None:
    """So spreading by customer works only if each address gets equally many of them."""
    addresses, ports = pool()
    assert count % CUSTOMERS == 0
    each, mean = count // CUSTOMERS, CUSTOMERS // addresses
    assert mean * each < FULL * ports
    assert (mean + 1) * each > 1.01 * ports
