# SPDX-License-Identifier: GPL-2.0-or-later
"""The picture at the head of a lab's page: its address plan, and where on a packet's way its rulesets act."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from fwlab.checkout.project import find_project, load_topology
from fwlab.report.plot import COLOURS, INK

#: The places that a packet passes, in this order, as guides/before.md has them.
PLACES = (
    "NIC",
    "XDP",
    "GRO",
    "ingress",
    "raw",
    "conntrack",
    "mangle",
    "route",
    "FORWARD",
    "POSTROUTING",
    "queue",
    "NIC out",
)
WIDTH_IN, LINE_IN, MACHINES_IN, PLACES_IN = 8.2, 0.21, 0.75, 1.0


def network(senders: Sequence[tuple[str, str]], receivers: Sequence[tuple[str, str]], acts: Sequence[str]) -> Drawing:
    """Who sends, who is behind the DUT, as (words, addresses), and the places where the lab's rulesets act.

    Raises ValueError for an unknown place.
    """
    unknown = set(acts) - set(PLACES)
    if unknown:
        raise ValueError(f"no place {', '.join(sorted(unknown))}; there are {', '.join(PLACES)}")
    lines = max(len(senders), len(receivers))
    height = MACHINES_IN + LINE_IN * lines + PLACES_IN
    drawing = Drawing(figsize=(WIDTH_IN, height))
    axes = drawing.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH_IN)
    axes.set_ylim(height, 0)
    _machines(axes)
    for x, hosts, side in ((0.1, senders, "left"), (WIDTH_IN - 0.1, receivers, "right")):
        for row, (words, addresses) in enumerate(hosts):
            text = f"{words}  {addresses}"
            axes.text(x, MACHINES_IN + LINE_IN * (row + 0.5), text, ha=side, va="center", fontsize=9)
    _places(axes, height - PLACES_IN + 0.5, acts)
    return drawing


def _machines(axes: Axes) -> None:
    """Generator, DUT and sink in a row, with the addresses of the links' ends from topology.yml."""
    links = load_topology(find_project()).links
    near, far = links["generator-dut"].ends, links["dut-sink"].ends
    ends = (
        ("generator", 0.7, None, near["generator"].ipv4),
        ("DUT", WIDTH_IN / 2, near["dut"].ipv4, far["dut"].ipv4),
        ("sink", WIDTH_IN - 0.7, far["sink"].ipv4, None),
    )
    for begin, end in ((1.2, WIDTH_IN / 2 - 0.35), (WIDTH_IN / 2 + 0.35, WIDTH_IN - 1.0)):
        axes.plot([begin, end], [0.32, 0.32], color=INK, linewidth=1.2)
    for name, x, left, right in ends:
        style = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": INK, "linewidth": 1}
        axes.text(x, 0.32, name, ha="center", va="center", fontsize=11, bbox=style)
        for address, side, step in ((left, "right", -0.6), (right, "left", 0.6)):
            if address is not None:
                axes.text(x + step, 0.24, str(address).split("/")[0], ha=side, va="bottom", fontsize=8, alpha=0.8)


def _places(axes: Axes, y: float, acts: Sequence[str]) -> None:
    """A packet's way through the DUT; the places where the lab acts are filled."""
    axes.text(0.1, y - 0.12, "a packet's way through the DUT, and where this lab acts", va="bottom", fontsize=9)
    room = (WIDTH_IN - 0.2) / sum(len(place) + 3 for place in PLACES)
    x = 0.1
    for place in PLACES:
        width = room * (len(place) + 3)
        colour = COLOURS[4] if place in acts else "none"
        axes.add_patch(Rectangle((x, y), width - 0.07, 0.32, facecolor=colour, alpha=0.5))
        axes.add_patch(Rectangle((x, y), width - 0.07, 0.32, facecolor="none", edgecolor=INK, linewidth=1))
        axes.text(x + (width - 0.07) / 2, y + 0.16, place, ha="center", va="center", fontsize=8.5)
        x += width
