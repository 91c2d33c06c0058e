# SPDX-License-Identifier: GPL-2.0-or-later
"""What the agent of a FreeBSD DUT reads out of pfctl, sysctl and vmstat."""

from pathlib import Path
from typing import Any

from tests.fakes.fake_freebsd import output, recorded, session
from tests.fakes.programs import needs

pytestmark = needs("lua5.4")


def asked(folder: Path, commands: dict[str, str], op: str) -> Any:
    spec = {name: output(text) for name, text in {"/sbin/ifconfig -a": "", **commands}.items()}
    (answer,) = session(folder, {"pid": 9, "commands": spec}, [{"op": op}]).answers
    return answer[op]


def test_states_are_counted_with_their_memory(tmp_path: Path) -> None:
    """Recorded after 14 152 packets, each of another flow."""
    commands = {
        "/sbin/pfctl -s info": recorded("pfctl-info.txt"),
        "/sbin/pfctl -s memory": recorded("pfctl-memory.txt"),
        "/sbin/sysctl -n net.pf.states_hashsize": "131072\n",
        "/sbin/sysctl vm.uma.pf_states": recorded("sysctl-pf-states.txt"),
        "/sbin/sysctl vm.uma.pf_state_keys": recorded("sysctl-pf-state-keys.txt"),
        "/usr/bin/vmstat --libxo json -m": recorded("vmstat-m.json"),
    }
    assert asked(tmp_path, commands, "states") == {
        "held": 14_152,
        "most": 200_000,
        "buckets": 131_072,
        "object_bytes": 384 + 88,
        "slab_bytes": (1423 + 310) * 4096,
        "bucket_bytes": 13_111_296,
    }


def test_rules_and_addresses_are_entries(tmp_path: Path) -> None:
    """Two anchors, three rules, and a table of two addresses and a network."""
    commands = {
        "/sbin/pfctl -a * -s rules": recorded("pfctl-rules.txt"),
        "/sbin/pfctl -s nat": "nat on vtnet1 inet from 198.18.0.0/16 to any -> 198.19.0.1\n",
        "/sbin/pfctl -s Tables": "bad\n",
        "/sbin/pfctl -t bad -T show": recorded("pfctl-table-show.txt"),
    }
    assert asked(tmp_path, commands, "entries") == {"rules": 6, "addresses": 3}


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
        "/sbin/sysctl -n hw.ncpu": "1\n",
        **shown,
    }
    files = {"/var/run/fwlab-start-state.json": record, "/etc/fwlab/image.json": '{"name": "dut-freebsd"}'}
    commands = {name: output(text) for name, text in spec.items()}
    told = session(tmp_path, {"pid": 9, "commands": commands, "files": files}, [{"op": "facts"}])
    assert told.answers[0]["facts"] == {
        "kernel": "FreeBSD 15.1-RELEASE-p1",
        "cmdline": "/boot/kernel/kernel GENERIC",
        "cpus": 1,
        "clocksource": "HPET",
        "image": {"name": "dut-freebsd"},
        "packet_sockets": 1,
    }
