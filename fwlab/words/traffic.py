# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic as lab.yml declares it: profiles, TCP connections, and the classes that packets are counted by."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from fwlab.words.declared import Strict, Value


class TrafficClass(Strict):
    """Packets that are counted together. What is not given matches everything."""

    src: str | None = None
    dst: str | None = None
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


class Connections(Strict):
    """TCP connections from many client addresses to many servers: one small object for each connection.

    clients, servers  IPv4 prefixes in 198.18.0.0/16 and 198.19.0.0/16; every address of them is used
    object_bytes      size of the object: with the head of its answer one packet of 1448 bytes after TCP's header
    concurrent        connections that are open at a time
    beside            a traffic profile that is played meanwhile, at `beside_pps` packets per second of the
                      generator's clock; its packets are counted by class at the sink
    """

    clients: str = "198.18.32.0/24"
    servers: str = "198.19.32.0/28"
    port: int = Field(default=80, ge=1, le=65535)
    object_bytes: int = Field(default=512, ge=1, le=1280)
    concurrent: int = Field(default=256, ge=1, le=4096)
    beside: str | None = None
    beside_pps: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _beside_at_a_rate(self) -> Connections:
        if (self.beside is None) != (self.beside_pps is None):
            raise ValueError("beside and beside_pps belong together: a traffic and its packets per second")
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
