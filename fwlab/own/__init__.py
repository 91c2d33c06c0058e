# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody's own firewall: which packets its rules tell apart, and what the kernel does with them.

packets      one packet as data, and as the bytes of a frame
bench        a program on the machine whose kernel is asked: rules in a namespace, packets through them, and the trace
bench_client the host's end of it
rules        rules as data
reading      rules read from what the kernel's own tools print: nft_rules, saved_rules (iptables) and names
layout       the machine that rules mean: its interfaces, networks and addresses
borders      packets at the borders of what rules name
walks        which rule decided about a packet, and what became of it
reach        which rules the packets reach, and what stands before the others
comparing    packets that two rulesets treat differently, reduced to the plainest
prices       what the packets cost about which one rule decides
stretches    where a packet's instructions go, by rules that follow each other
forms        the same rules as other tools load them
changes      what often makes rules cheaper, made and tried
files        the rules as files
showing      what was found, as text and as JSON
"""
