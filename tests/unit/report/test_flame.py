# SPDX-License-Identifier: GPL-2.0-or-later
"""The flame graph: an SVG element without script that has the figures of every box, and the page around it."""

from xml.etree import ElementTree

import pytest

from fwlab.report.flame import OTHER, flame, part
from fwlab.report.model import build_model
from fwlab.report.renderers.html import page
from tests.fakes.factories import a_lab, a_run, measured

STACKS = {"net_rx_action;virtnet_poll": 50, "net_rx_action;virtnet_poll;ip_forward<&>": 49, "net_rx_action": 1}
LAB = a_lab()


def drawn(stacks: dict[str, int], cost: float | None = 2000) -> ElementTree.Element:
    return ElementTree.fromstring(flame(stacks, cost, "instructions per packet"))


def test_each_box_has_its_share_and_its_cost() -> None:
    titles = [title.text for title in drawn(STACKS).iter("title")]
    assert titles == [
        "net_rx_action: 100 %, 2000 instructions per packet",
        "virtnet_poll: 99.0 %, 1980 instructions per packet",
        "ip_forward<&>: 49.0 %, 980 instructions per packet",
    ]
    assert next(title.text for title in drawn(STACKS, None).iter("title")) == "net_rx_action: 100 %"
    assert flame({}, 2000, "ns per packet") == ""


def test_callers_are_below() -> None:
    heights = [float(group.find("rect").get("y")) for group in drawn(STACKS).iter("g")]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == 3


def test_names_are_cut_to_their_box() -> None:
    stacks = {"a_function_with_quite_a_long_name": 5, "b": 95}
    (label,) = [text.text for text in drawn(stacks).iter("text") if text.text.startswith("a_fun")]
    assert label.endswith("…")
    assert len(label) < 10


def test_a_narrow_box_has_a_title_but_no_label() -> None:
    root = drawn({"narrow": 1, "wide": 199})
    assert "narrow" not in [text.text for text in root.iter("text")]
    assert any(title.text.startswith("narrow: 0.50 %") for title in root.iter("title"))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("virtqueue_add_split", "driver"),
        ("nft_do_chain", "filter"),
        ("ip_set_test", "filter"),
        ("ip_forward", "routing"),
        ("fib_table_lookup", "routing"),
        ("clear_page_rep", "memory"),
        ("skb_release_data", "memory"),
        ("dev_gro_receive", "GRO"),
        ("sch_direct_xmit", "sending"),
        ("net_rx_action", OTHER[0]),
    ],
)
def test_parts_of_the_kernel(function: str, expected: str) -> None:
    assert part(function)[0] == expected


def test_the_page_shows_a_sampled_case() -> None:
    run = a_run([measured(LAB, "raw-drop", 250_000, 250_000, stacks=STACKS)])
    text = page(build_model(LAB, run))
    assert "Where a packet's time goes" in text
    assert "sampled 100 times" in text
    assert "<title>virtnet_poll: 99.0 %, 3960 instructions per packet</title>" in text
    assert "<td><code>ip_forward&lt;&amp;&gt;</code></td>" in text
    assert "<script" not in text


def test_a_page_without_samples_does_not_mention_them() -> None:
    assert "packet's time" not in page(build_model(LAB, a_run([measured(LAB, "raw-drop", 250_000)])))
