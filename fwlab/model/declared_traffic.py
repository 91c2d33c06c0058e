# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic as lab.yml declares it: traffic profiles, TCP connections, and the classes that packets are counted by."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from fwlab.model.declared import Strict, Value, exactly_one, together

#: Where test traffic comes from and where it goes: the halves of RFC 2544's network for benchmarks.
OF_CLIENTS, OF_SERVERS = ipaddress.IPv4Network("198.18.0.0/16"), ipaddress.IPv4Network("198.19.0.0/16")


def _text_only(value: object) -> object:
    """Refuse numbers and booleans, which the ipaddress module would take for 0.0.0.1."""
    if not isinstance(value, str | ipaddress.IPv4Address):
        raise ValueError(f"{value} is not an IPv4 address: write four numbers with dots between them")
    return value


class AddressList(Strict):
    """`count` IPv4 addresses that begin with `first` and are `step` apart."""

    first: Annotated[ipaddress.IPv4Address, BeforeValidator(_text_only)]
    step: int = Field(default=1, ge=1)
    count: int = Field(ge=1, le=65536)

    @model_validator(mode="after")
    def _within_ipv4(self) -> AddressList:
        if int(self.first) + self.step * (self.count - 1) >= 2**32:
            raise ValueError(f"{self.count} addresses {self.step} apart, beginning with {self.first}, exceed IPv4")
        return self

    def numbers(self) -> range:
        """The addresses as integers."""
        first = int(self.first)
        return range(first, first + self.step * self.count, self.step)


_Hex = Annotated[str, Field(pattern="^([0-9a-f]{2}){1,16}$")]


class Payload(Strict):
    """Bytes of a UDP payload.

    at     where they begin: bytes behind the UDP header. nftables reaches 255 bytes from the beginning of that header
    hex    the bytes, two hexadecimal digits each; 16 bytes at most, what one comparison of nftables holds. A list: any
           of them
    size   of a class by stream, with `at` and without `hex`: the number of bytes that its packets have there. `hex`
           without `at`: these bytes, wherever its packets have them
    """

    MAX_AT: ClassVar[int] = 247
    at: int | None = Field(default=None, ge=0, le=MAX_AT)
    hex: list[_Hex] = []
    size: int | None = Field(default=None, ge=1, le=16)

    @field_validator("hex", mode="before", json_schema_input_type=_Hex | list[_Hex])
    @classmethod
    def _listed(cls, value: object) -> object:
        if isinstance(value, int):
            raise ValueError(f"{value} is a number to YAML: put the hexadecimal digits between quotes")
        return [value] if isinstance(value, str) else value

    def reject_incomplete(self, *, by_stream: bool) -> None:
        """Raises ValueError unless it says what a class has in its payload."""
        drawn = (self.at is None and len(self.hex) == 1) or (self.at is not None and not self.hex)
        if by_stream and not (drawn and (self.size is not None) == (self.at is not None)):
            raise ValueError("the payload of a class by stream has either at and size, or hex alone")
        if not by_stream and (self.at is None or not self.hex or self.size is not None):
            raise ValueError("payload needs at and hex, and no size")


_PORTS = "([0-9]{1,5})(?:-([0-9]{1,5}))?"
_PORTS_SCHEMA = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 65535}, {"type": "string", "pattern": f"^{_PORTS}$"}]
}
#: One port, or a range of them.
Ports = Annotated[int | str, WithJsonSchema(_PORTS_SCHEMA)]
#: Of a class by stream.
_OF_A_STREAM = frozenset({"stream", "address", "payload", "at"})


def _classes_in_schema(schema: dict[str, Any]) -> None:
    """Fields that exclude others, as the validators below have it."""
    pairs = [("src", "sources"), ("dst", "destinations"), ("dport", "dports")]
    others = [name for name in schema["properties"] if name not in _OF_A_STREAM]
    schema["allOf"] = [
        *({"not": {"required": list(pair)}} for pair in pairs),
        {"not": {"required": ["stream"], "anyOf": [{"required": [name]} for name in others]}},
    ]
    schema["dependentRequired"] = {"dports": ["sources"], "address": ["stream"]}


class TrafficClass(Strict):
    """Packets that are counted together. A field that is not given matches everything.

    src, dst               a prefix, IPv4 or IPv6
    sources, destinations  a list of IPv4 addresses {first, step, count}, for classes whose addresses alternate
    dports                 with `sources`: the destination port of each source, in turn; after the last port the first
                           one follows again
    proto                  udp, tcp or icmp
    sport, dport           a port or a range LOWEST-HIGHEST
    payload                bytes of a UDP payload {at, hex}, for classes that differ in what they carry alone
    stream                 a stream of the profile, by its name, and no other field but the next three: the class has
                           the flows of that stream (source address, destination port and protocol). It may be another
                           list of hosts, ports or pairs in each traffic of the lab, and for each seed. A profile may
                           make it up of several: `visitors 1`, `visitors 2`
    address                with `stream`: source or destination. The class has all packets with such an address of that
                           stream, whatever their ports
    payload                with `stream`: what is in the payload of its packets
    at                     where it is counted: at the sink, or at the generator, for packets that the DUT sends back

    Let addresses (or flows, or payloads) be the only difference between the classes of an exercise. If their packets
    also differ in protocol, length or port, a ruleset can tell them apart by that instead.
    """

    model_config = ConfigDict(json_schema_extra=_classes_in_schema)
    stream: str | None = Field(default=None, min_length=1)
    src: str | None = None
    dst: str | None = None
    sources: AddressList | None = None
    destinations: AddressList | None = None
    dports: list[Annotated[int, Field(ge=0, le=65535)]] = []
    proto: Literal["udp", "tcp", "icmp"] | None = None
    sport: Ports | None = None
    dport: Ports | None = None
    payload: Payload | None = None
    address: Literal["source", "destination"] | None = None
    at: Literal["sink", "generator"] = "sink"

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
            found = re.fullmatch(_PORTS, str(value))
            if not (found and int(found[1]) <= int(found[2] or found[1]) <= 65535):
                raise ValueError(f"{value} is neither a port nor a range LOWEST-HIGHEST")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> TrafficClass:
        for one, other in (("src", "sources"), ("dst", "destinations"), ("dport", "dports")):
            if getattr(self, one) is not None and getattr(self, other):
                raise ValueError(f"give {one} or {other}, not both")
        if self.dports and self.sources is None:
            raise ValueError("dports needs sources: it lists a port for each of them")
        if self.payload is not None and self.proto not in (None, "udp"):
            raise ValueError(f"payload is that of UDP, not of {self.proto}")
        listed = self.sources or self.destinations
        prefixes = [prefix for prefix in (self.src, self.dst) if prefix is not None]
        if listed and any(ipaddress.ip_network(prefix).version == 6 for prefix in prefixes):
            raise ValueError("a list of IPv4 addresses cannot be combined with an IPv6 prefix")
        return self

    def pairs(self) -> list[tuple[int, int]]:
        """Each of the sources, as an integer, with its port; empty without `sources` or `dports`."""
        sources = self.sources.numbers() if self.sources is not None and self.dports else ()
        return [(source, self.dports[place % len(self.dports)]) for place, source in enumerate(sources)]

    @model_validator(mode="after")
    def _stream_alone(self) -> TrafficClass:
        if self.stream is not None and self.model_fields_set - _OF_A_STREAM:
            raise ValueError("a class by stream can have no other field, except address, payload and at")
        if self.address is not None and (self.stream is None or self.payload is not None):
            raise ValueError("address needs stream, and no payload: it is that of a stream's packets")
        if self.payload is not None:
            self.payload.reject_incomplete(by_stream=self.stream is not None)
        return self


class Connections(Strict):
    """TCP connections from many client addresses to many servers. Each fetches one small object.

    clients, servers     IPv4 prefixes in 198.18.0.0/16 and 198.19.0.0/16; every address of them is used
    port                 of the servers
    object_bytes         size of the object; with its HTTP header it must fit in one packet of 1448 bytes of payload
    concurrent           connections that are open at a time
    background           a traffic with a profile that is played at the same time; the sink counts it by class
    background_pps       its rate, in packets per second of the generator's clock
    background_flat_out  false: it is not played during the trials flat out, which a few packets that must not arrive
                         would only disturb
    """

    model_config = ConfigDict(json_schema_extra=together("background", "background_pps"))
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
        whole = OF_CLIENTS if info.field_name == "clients" else OF_SERVERS
        if not ipaddress.IPv4Network(value).subnet_of(whole):
            raise ValueError(f"{value} is not inside {whole}")
        return value


class Translation(Strict):
    """What source NAT gives the packets of a traffic.

    to     the addresses, a prefix
    ports  the ports, a range LOWEST-HIGHEST
    """

    to: str
    ports: str = Field(pattern="^[0-9]{1,5}-[0-9]{1,5}$")

    @field_validator("to")
    @classmethod
    def _of_test_traffic(cls, value: str) -> str:
        whole = OF_CLIENTS.supernet()
        if not ipaddress.IPv4Network(value).subnet_of(whole):
            raise ValueError(f"{value} is not inside {whole}")
        return value

    @property
    def port_range(self) -> tuple[int, int]:
        """The lowest port and the highest."""
        low, high = map(int, self.ports.split("-"))
        return low, high

    @model_validator(mode="after")
    def _in_order(self) -> Translation:
        low, high = self.port_range
        if not 0 < low <= high <= 65535:
            raise ValueError(f"{self.ports} is no range of ports LOWEST-HIGHEST")
        return self


class Redirection(Strict):
    """What destination NAT gives the packets of a traffic that are for services. All others it must leave alone.

    services   the services' addresses, a prefix
    port       their port
    endpoints  a prefix of the same length
    factor     the n-th address of `services` has the endpoint (factor x n), modulo their number: an odd number, so
               that each has another one, and not 1, so that no prefix is exchanged for the other
    endpoint_port  the port of the endpoints
    """

    services: str
    port: int = Field(ge=1, le=65535)
    endpoints: str
    factor: int = Field(ge=3)
    endpoint_port: int = Field(ge=1, le=65535)

    @model_validator(mode="after")
    def _one_endpoint_each(self) -> Redirection:
        services, endpoints = ipaddress.IPv4Network(self.services), ipaddress.IPv4Network(self.endpoints)
        if not (services.subnet_of(OF_SERVERS) and endpoints.subnet_of(OF_SERVERS)):
            raise ValueError(f"{services} and {endpoints} must be inside {OF_SERVERS}")
        if services.prefixlen != endpoints.prefixlen or services.overlaps(endpoints):
            raise ValueError(f"{services} and {endpoints} must be two prefixes of one length")
        if self.factor % 2 == 0:
            raise ValueError(f"the factor {self.factor} is even: services would share endpoints")
        return self


class Traffic(Strict):
    """Either a traffic profile or TCP connections.

    profile      a stateless TRex profile: a file in the lab's folder, or one that labs share, as ../common/flood.py
    tunables     arguments of its get_streams
    in_order     the order of its frames matters, as where the DUT merges segments of a connection: an engine that does
                 not keep it does not play this traffic
    translated   the source that a ruleset has to give each packet that leaves for the sink. With any other one, it is
                 foreign. Known only where QEMU records what leaves the DUT
    redirected   the destination that a ruleset has to give packets for services, likewise
    connections  TCP connections
    """

    model_config = ConfigDict(json_schema_extra=exactly_one("profile", "connections"))
    profile: str | None = None
    tunables: dict[str, Value] = {}
    in_order: bool = False
    translated: Translation | None = None
    redirected: Redirection | None = None
    connections: Connections | None = None
    _fixed: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="after")
    def _one_of_two(self) -> Traffic:
        if (self.profile is None) == (self.connections is None):
            raise ValueError("a traffic has either a profile or connections")
        profiles = {
            "in_order belongs": self.in_order,
            "tunables belong": self.tunables,
            "translated belongs": self.translated,
            "redirected belongs": self.redirected,
        }
        if self.translated and self.redirected:
            raise ValueError("a traffic is either translated or redirected")
        if self.connections is not None and (named := [words for words, given in profiles.items() if given]):
            raise ValueError(f"{named[0]} to a profile")
        return self

    def tuned(self, **more: Value) -> Traffic:
        """The same profile, with some tunables changed. No seed changes these."""
        other = self.model_copy(update={"tunables": {**self.tunables, **more}})
        other._fixed = self._fixed | set(more)
        return other

    def with_drawn(self, tunables: dict[str, Value]) -> dict[str, Value]:
        """Those tunables of a seed, but for those that were changed by `tuned`."""
        return {**tunables, **{key: self.tunables[key] for key in self._fixed}}
