# SPDX-License-Identifier: GPL-2.0-or-later
"""A flame graph as inline SVG, without scripts: callees above callers, width as the share of a packet's cost.

Text takes the colour of the surrounding page and fills are translucent, so that one drawing serves light and dark
themes. Each box has its name, share and cost as its title, which a browser shows on hovering.
"""

from html import escape

from fwlab.metrics.call_stacks import Box, Stacks, boxes
from fwlab.report.formatting import digits, percent

WIDTH = 1000
ROW = 18
FONT = 11
#: Width of a letter of a monospaced font of that size (px).
LETTER = 6.7
#: Boxes narrower than this share are not drawn: they take less than a pixel.
NARROWEST = 0.001
#: Parts of the kernel by prefixes of their functions' names, in Okabe and Ito's colours; the first match counts.
PARTS = (
    ("driver", "#0072B2", """
        virtnet virtqueue vring receive_buf start_xmit try_fill free_old_xmit detach_buf page_to_skb skb_recv_done
        add_recvbuf xdp_ bpf_prog"""),
    ("filter", "#D55E00", """
        nf_ nft_ ipt_ ip6t_ xt_ iptable ip6table ip_set hash_ip set_match tcf_ u32_ fl_ tc_ cls_ udp_error
        tcp_error"""),
    ("memory", "#E69F00", """
        kmem kfree kmalloc skb __skb build_skb __build_skb __napi_build __napi_alloc napi_skb page __page get_page
        clear_page alloc __alloc free_ __free ___slab memset memcpy put_page __put_page consume_skb sock_wfree slab"""),
    ("GRO", "#56B4E9", "dev_gro napi_gro inet_gro ipv6_gro udp4_gro udp6_gro udp_gro tcp4_gro gro_"),
    ("routing", "#009E73", "ip_ ip6_ ipv6_ __ip_ fib rt_ rt6 dst_ inet_ neigh arp_ ipv4_"),
    ("sending", "#CC79A7", """
        __dev_queue dev_queue dev_hard sch_ __qdisc qdisc validate_xmit netif_skb netdev_ pfifo fq_ harmonize"""),
)  # fmt: skip
OTHER = ("other", "#808080")


def flame(stacks: Stacks, cost: float | None, unit: str, label: str = "flame graph") -> str:
    """The graph as an <svg> element; an empty string without samples.

    cost   of one packet, in `unit` ("instructions per packet"); None if the capacity is unknown
    label  words for those who do not see it
    """
    found = boxes(stacks, NARROWEST)
    if not found:
        return ""
    deepest = max(box.depth for box in found)
    height = (deepest + 2) * ROW
    lines = [
        (
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" '
            f'font-family="ui-monospace, monospace" font-size="{FONT}">'
        )
    ]
    lines += [_drawn(box, deepest, cost, unit) for box in found]
    lines += [_legend({part(box.name) for box in found}, height - 5), "</svg>"]
    return "\n".join(lines)


def part(name: str) -> tuple[str, str]:
    """The part of the kernel that a function belongs to, by its name, and its colour."""
    return next(((label, colour) for label, colour, starts in PARTS if name.startswith(tuple(starts.split()))), OTHER)


def _drawn(box: Box, deepest: int, cost: float | None, unit: str) -> str:
    left, width = box.left * WIDTH, box.width * WIDTH
    top = (deepest - box.depth) * ROW
    letters = int((width - 4) / LETTER)
    label = box.name if len(box.name) <= letters else f"{box.name[: letters - 1]}…" if letters > 3 else ""
    title = f"{box.name}: {percent(box.width)}"
    if cost is not None:
        title += f", {digits(box.width * cost, 3)} {unit}"
    text = f'<text x="{left + 3:.1f}" y="{top + 13}" fill="currentColor">{escape(label)}</text>' if label else ""
    return (
        f"<g><title>{escape(title)}</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{max(width - 0.4, 0.3):.2f}" height="{ROW - 1}" rx="1.5" '
        f'fill="{part(box.name)[1]}" fill-opacity="0.45"/>{text}</g>'
    )


def _legend(used: set[tuple[str, str]], baseline: int) -> str:
    """A swatch and a label for each part of the kernel in the graph."""
    known = [*((label, colour) for label, colour, _ in PARTS), OTHER]
    marks, left = [], 0.0
    for label, colour in (item for item in known if item in used):
        marks.append(
            f'<rect x="{left:.0f}" y="{baseline - 9}" width="11" height="11" fill="{colour}" fill-opacity="0.45"/>'
            f'<text x="{left + 16:.0f}" y="{baseline}" fill="currentColor">{label}</text>'
        )
        left += 16 + LETTER * (len(label) + 3)
    return "".join(marks)
