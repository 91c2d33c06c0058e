# SPDX-License-Identifier: GPL-2.0-or-later
"""What the agent of a FreeBSD DUT reads out of pfctl, sysctl and vmstat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.offline.fake_freebsd import output, session
from tests.offline.programs import needs

pytestmark = needs("lua5.4")

INFO = """Status: Enabled for 0 days 00:01:12             Debug: Urgent

State Table                          Total             Rate
  current entries                     4096
  searches                           12345          171.5/s
Counters
  match                               4096           56.9/s
"""
MEMORY = """states        hard limit   100000
src-nodes     hard limit    10000
frags         hard limit     5000
table-entries hard limit   200000
anchors       hard limit      512
eth-anchors   hard limit      512
"""
RULES = """block drop in quick on vtnet0 from <bad> to any
anchor "first" on vtnet0 all {
  block drop proto udp all
  pass proto tcp all flags S/SA keep state
}
anchor "later/*" all
pass all flags S/SA keep state
"""


def zone(name: str, size: int, pages: int) -> str:
    return f"""vm.uma.{name}.size: {size - 4}
vm.uma.{name}.keg.name: {name.replace("_", " ")}
vm.uma.{name}.keg.rsize: {size}
vm.uma.{name}.keg.ipers: 11
vm.uma.{name}.keg.domain.0.pages: {pages}
vm.uma.{name}.keg.domain.0.free_items: 3
vm.uma.{name}.limit.max_items: 100001
"""


def asked(folder: Path, commands: dict[str, str], op: str) -> Any:
    spec = {name: output(text) for name, text in {"/sbin/ifconfig -a": "", **commands}.items()}
    (answer,) = session(folder, {"pid": 9, "commands": spec}, [{"op": op}]).answers
    return answer[op]


def test_states_are_counted_with_their_memory(tmp_path: Path) -> None:
    vmstat = '{"malloc-statistics": {"memory": [{"type":"pf_hash","in-use":5,"memory-use":11534336}]}}'
    commands = {
        "/sbin/pfctl -s info": INFO,
        "/sbin/pfctl -s memory": MEMORY,
        "/sbin/sysctl -n net.pf.states_hashsize": "32768\n",
        "/sbin/sysctl vm.uma.pf_states": zone("pf_states", 360, 400),
        "/sbin/sysctl vm.uma.pf_state_keys": zone("pf_state_keys", 88, 90),
        "/usr/bin/vmstat --libxo json -m": vmstat,
    }
    assert asked(tmp_path, commands, "states") == {
        "held": 4096,
        "most": 100_000,
        "buckets": 32_768,
        "object_bytes": 448,
        "slab_bytes": 490 * 4096,
        "bucket_bytes": 11_534_336,
    }


def test_rules_and_addresses_are_entries(tmp_path: Path) -> None:
    commands = {
        "/sbin/pfctl -a * -s rules": RULES,
        "/sbin/pfctl -s nat": "nat on vtnet1 inet from 198.18.0.0/16 to any -> 198.19.0.1\n",
        "/sbin/pfctl -s Tables": "bad\n__automatic_1a2b3c4d_0\n",
        "/sbin/pfctl -t bad -T show": "   198.18.1.1\n   198.18.1.2\n",
        "/sbin/pfctl -t __automatic_1a2b3c4d_0 -T show": "   198.18.4.0/24\n",
    }
    assert asked(tmp_path, commands, "entries") == {"rules": 7, "addresses": 3}


def test_only_readers_of_packets_on_a_link_count(tmp_path: Path) -> None:
    sockets = """  Pid  Netif   Flags      Recv      Drop     Match Sblen Hblen Command
  512 pflog0 p--s---         0         0         0     0     0 pflogd
  420 vtnet2 -ifs--l         9         0         9     0     0 dhclient
  991 vtnet0 p--s---       100         0       100     0     0 tcpdump
"""
    record = '{"rules":""}'
    shown = {f"/sbin/pfctl -s {words}": "" for words in ("nat", "rules", "Tables", "memory", "timeouts")}
    spec = {
        "/sbin/ifconfig -a": "",
        "/sbin/kldload -n pf": "",
        "/usr/bin/netstat -B": sockets,
        "/sbin/sysctl -n kern.ostype": "FreeBSD\n",
        "/sbin/sysctl -n kern.osrelease": "15.1-RELEASE-p1\n",
        "/sbin/sysctl -n kern.bootfile": "/boot/kernel/kernel\n",
        "/sbin/sysctl -n kern.ident": "GENERIC\n",
        "/sbin/sysctl -n kern.timecounter.hardware": "HPET\n",
        **shown,
    }
    files = {"/var/run/fwlab-start-state.json": record, "/etc/fwlab/image.json": '{"name": "dut-freebsd"}'}
    commands = {name: output(text) for name, text in spec.items()}
    told = session(tmp_path, {"pid": 9, "commands": commands, "files": files}, [{"op": "facts"}])
    assert told.answers[0]["facts"] == {
        "kernel": "FreeBSD 15.1-RELEASE-p1",
        "cmdline": "/boot/kernel/kernel GENERIC",
        "clocksource": "HPET",
        "image": {"name": "dut-freebsd"},
        "packet_sockets": 1,
    }
