# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.ipset files."""

from __future__ import annotations

from tests.contract.kinds import ASKS, Samples

FULL = "the sets take more than 256 MiB of the DUT's memory"
LARGE = "create a hash:ip maxelem 10000000\n"
COMMENTS = "create a hash:ip comment maxelem 10000000\n"
HOSTS = [
    ("web.example.org", "create a hash:ip\nadd a web.example.org\n"),
    ("web", "create a hash:ip\n-exist add a web\n"),
    ("localhost", "create a hash:net\nadd a localhost/24\n"),
    ("web", "-N a iphash\n-A a web\n"),
    ("web.example.org", "create a hash:ip,port\nadd a web.example.org,tcp:80\n"),
    ("web", "create a hash:ip,port,net\nadd a 198.18.0.1,tcp:80,web\n"),
    ("web.example.org", "create a hash:net,iface\nadd a web.example.org,eth0\n"),
    ("my-web.example.org", "create a hash:ip\nadd a [my-web.example.org]\n"),
    ("web.example.org", "create a hash:ip\ndel a web.example.org\n"),
    ("web.example.org", "add elsewhere web.example.org\n"),
    ("web.example.org", "create a bitmap:ip range web.example.org/24\n"),
]
SAMPLES = [
    Samples(
        name="ipset",
        held="create one hash:ip\n",
        accepted=[
            "create blacklist hash:ip family inet hashsize 1024 maxelem 65536",
            "add blacklist 198.18.1.1",
            "add ranges 198.18.1.1-198.18.1.9 -exist",
            "-N old iphash --maxelem 4",
            "COMMIT",
            *(
                f"create customers hash:ip maxelem {most}\nadd customers 198.18.0.1"
                for most in (65536, 4_194_305, 10_000_000, 4_000_000_000)
            ),
            f"{LARGE}add a 10.0.0.0-10.63.0.0",
            "create a hash:ip hashsize 16777216\ncreate b hash:ip hashsize 16777216",
            "create a hash:ip\nadd a 10.0.0.0/8",
            f'{COMMENTS}add a 10.0.0.0/12 comment "{"x" * 100}"',
            "create web.example.org hash:ip\nadd web.example.org 198.18.0.1-198.18.0.9\n",
            "create a hash:net,iface\nadd a 198.18.0.0/24,lan.home\n",
            "create a hash:ip,port family inet6\nadd a 2001:2::1,tcp:http\n",
            "create a bitmap:port range http-https\nadd a http\n",
            "create a hash:mac\nadd a 00:11:22:33:44:55\n",
            "create b hash:ip\ncreate a list:set\nadd a b\n",
            "create a hash:ip,mark\nadd a 198.18.0.1,0xff\n",
            'create a hash:ip comment\nadd a 198.18.0.1 comment "web.example.org"\n',
            "create a hash:ip timeout 60\nadd a 198.18.0.0/30 timeout 5\n",
            "swap web.example.org a.b\n",
        ],
        refused=[
            (f"{LARGE}add a 10.0.0.0-10.64.0.0\n", f"2: {FULL}"),
            ("add elsewhere 10.0.0.0/8\n", f"1: {FULL}"),
            (f'{COMMENTS}add a 10.0.0.0/10 comment "xxxx"\n', f"2: {FULL}"),
            (f'{COMMENTS}add a 10.0.0.0/12 comment "{"x" * 200}"\n', f"2: {FULL}"),
            *((text, f"{text.count(chr(10))}: " + ASKS.format(name)) for name, text in HOSTS),
        ],
        loaded=[("# x\n", [("ipset restore", "# x\n")])],
        each=[
            (
                "create blacklist hash:ip maxelem 4\n# one\n-exist add blacklist 198.18.64.1\nCOMMIT\nadd x; $(halt)\n",
                [
                    ["ipset", "create", "blacklist", "hash:ip", "maxelem", "4"],
                    ["ipset", "-exist", "add", "blacklist", "198.18.64.1"],
                    ["ipset", "add", "x;", "$(halt)"],
                ],
            )
        ],
        missing=[
            ("create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\ntwo\n"}, None),
            ("create one hash:ip\ncreate two hash:ip\n", {"ipset list -n": "one\n"}, "sets two"),
            ("create one hash:ip\nrename one two\ndestroy x\n", {"ipset list -n": "two\n"}, None),
        ],
    )
]
