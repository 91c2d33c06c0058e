# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic as lab.yml declares it: profiles, TCP connections, and the classes that packets are counted by."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from fwlab.model.declared import Strict, Value


def _written_out(value: object) -> object:
    """An address is text: a number or a truth value would pass for 0.0.0.1."""
    if not isinstance(value, str | ipaddress.IPv4Address):
        raise ValueError(f"{value} is no address: write four numbers with dots between them")
    return value


class AddressList(Strict):
    """`count` IPv4 addresses, `step` apart, from `first` on."""

    first: Annotated[ipaddress.IPv4Address, BeforeValidator(_written_out)]
    step: int = Field(default=1, ge=1)
    count: int = Field(ge=1, le=65536)

    @model_validator(mode="after")
    def _ends_somewhere(self) -> AddressList:
        if int(self.first) + self.step * (self.count - 1) >= 2**32:
            raise ValueError(f"{self.count} addresses {self.step} apart from {self.first} on: there are not so many")
        return self

    def numbers(self) -> range:
        """The addresses as numbers."""
        first = int(self.first)
        return range(first, first + self.step * self.count, self.step)


class TrafficClass(Strict):
    """Packets that are counted together. What is not given matches everything.

    src, dst               a prefix
    sources, destinations  a list of addresses; for classes whose addresses lie between each other
    dports                 with `sources`: the port that goes with each of them, in turn, from the start when they end
    stream                 the name of a stream of the profile, alone: the class has the flows of that stream, a flow
                           being a source address and a destination port. So a class may be any list of hosts, ports or
                           pairs, another in each traffic of the lab

    Let addresses (or flows) tell the classes of an exercise apart, and nothing else that a ruleset could go by instead:
    their packets should have the same protocol and length, and the same ports where ports are not what it is about.
    """

    stream: str | None = Field(default=None, min_length=1)
    src: str | None = None
    dst: str | None = None
    sources: AddressList | None = None
    destinations: AddressList | None = None
    dports: list[Annotated[int, Field(ge=0, le=65535)]] = []
    proto: Literal["udp", "tcp", "icmp"] | None = None
    sport: int | str | None = None
    dport: int | str | None = None

    @field_validator("src", "dst")
    @classmethod
    def _prefix(cls, value: str | None) -> str | None:
        if value is not None:
            ipaddress.ip_network(value)
        return value

    @field_validator("sport", "dport")
    @classmethod
    def _ports(cls, value: int | str | None) -> int | str | None:
        if value is not None:
            found = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", str(value))
            if not (found and int(found[1]) <= int(found[2] or found[1]) <= 65535):
                raise ValueError(f"{value} is neither a port nor lowest-highest")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> TrafficClass:
        for one, other in (("src", "sources"), ("dst", "destinations"), ("dport", "dports")):
            if getattr(self, one) is not None and getattr(self, other):
                raise ValueError(f"give {one} or {other}, not both")
        if self.dports and self.sources is None:
            raise ValueError("dports are the ports that go with sources")
        listed = self.sources or self.destinations
        prefixes = [prefix for prefix in (self.src, self.dst) if prefix is not None]
        if listed and any(ipaddress.ip_network(prefix).version == 6 for prefix in prefixes):
            raise ValueError("a list holds IPv4 addresses, and the prefix is one of IPv6")
        return self

    def pairs(self) -> list[tuple[int, int]]:
        """Each of the sources, as a number, and the port that goes with it."""
        ports = self.dports
        return [(source, ports[place % len(ports)]) for place, source in enumerate(self.sources.numbers())]

    @model_validator(mode="after")
    def _stream_alone(self) -> TrafficClass:
        if self.stream is not None and self.model_fields_set != {"stream"}:
            raise ValueError("a class by stream is declared by its stream alone")
        return self


class Connections(Strict):
    """TCP connections from many client addresses to many servers: one small object for each connection.

    clients, servers  IPv4 prefixes in 198.18.0.0/16 and 198.19.0.0/16; every address of them is used
    object_bytes      size of the object: with the head of its answer one packet of 1448 bytes after TCP's header
    concurrent        connections that are open at a time
    background        a traffic profile that is played meanwhile, at `background_pps` packets per second of the
                      generator's clock; its packets are counted by class at the sink
    background_flat_out   false: it is played at the light rate alone, where a few packets that must not arrive would
                      only disturb the trials flat out
    """

    clients: str = "198.18.32.0/24"
    servers: str = "198.19.32.0/28"
    port: int = Field(default=80, ge=1, le=65535)
    object_bytes: int = Field(default=512, ge=1, le=1280)
    concurrent: int = Field(default=256, ge=1, le=4096)
    background: str | None = None
    background_pps: float | None = Field(default=None, gt=0)
    background_flat_out: bool = True

    @model_validator(mode="after")
    def _background_at_a_rate(self) -> Connections:
        if (self.background is None) != (self.background_pps is None):
            raise ValueError("background and background_pps belong together: a traffic and its packets per second")
        return self

    @field_validator("clients", "servers")
    @classmethod
    def _inside(cls, value: str, info: ValidationInfo) -> str:
        whole = ipaddress.IPv4Network({"clients": "198.18.0.0/16", "servers": "198.19.0.0/16"}[info.field_name])
        if not ipaddress.IPv4Network(value).subnet_of(whole):
            raise ValueError(f"{value} is not inside {whole}")
        return value


class Traffic(Strict):
    """Either a traffic profile with its tunables (`profile` is a file in the lab's folder), or TCP connections."""

    profile: str | None = None
    tunables: dict[str, Value] = {}
    connections: Connections | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Traffic:
        if (self.profile is None) == (self.connections is None):
            raise ValueError("a traffic has either a profile or connections")
        if self.connections is not None and self.tunables:
            raise ValueError("tunables belong to a profile")
        return self

    def tuned(self, **more: Value) -> Traffic:
        """The same profile with other tunables."""
        return self.model_copy(update={"tunables": {**self.tunables, **more}})
