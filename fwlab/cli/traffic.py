# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab traffic`: show what a traffic profile sends, without sending it."""

import contextlib
import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Columns

from fwlab.checkout.project import find_project, load_topology
from fwlab.cli.options import Json, Seed
from fwlab.cli.output import print_json
from fwlab.generator.frame_table import write_pcap
from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex.astf import astf_profile
from fwlab.measure.labs import load_lab
from fwlab.model.declared import Value
from fwlab.model.declared_traffic import Connections, Traffic
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.traffic import DEFAULT_LIMIT, Frames, expand
from fwlab.traffic.classes import count_classes
from fwlab.traffic.expand import simulator_macs
from fwlab.traffic.frame_loop import Table
from fwlab.traffic.streams import parse_streams

app = typer.Typer(help="Show what a traffic profile sends, without sending it.", no_args_is_help=True)

FIRST_FRAMES = 5
_HINT = 'expected {"streams": [...], "packet_limit": N}, or just the list of streams'

Limit = Annotated[int | None, typer.Option(help="Number of frames.")]
Pcap = Annotated[Path | None, typer.Option("--pcap", help="Write the frames to this file, for Wireshark.")]


@app.command("expand")
def expand_command(
    file: Annotated[Path, typer.Argument(help="Streams in TRex's RPC format (JSON).")],
    limit: Limit = None,
    pcap: Pcap = None,
    as_json: Json = False,
) -> None:
    """Expand streams into frames as TRex's simulator does with one core, leaving fix_checksum_hw to the network card.

    The default limit is the file's packet_limit, or 5000 without one.
    """
    form = _read_form(file)
    chosen = limit if limit is not None else form.get("packet_limit") or DEFAULT_LIMIT
    try:
        frames = expand(
            form["streams"],
            limit=chosen,
            macs=simulator_macs(form.get("direction") or 0),
        )
    except BadInput as error:
        raise BadInput(f"{file}: {error.message}", error.hint) from error
    if pcap is not None:
        write_pcap(pcap, frames, frames.times_ns)
    streams = _per_stream(form["streams"], frames)
    summary: dict[str, Any] = {
        "frames": len(frames),
        "seconds": int(frames.times_ns[-1] - frames.times_ns[0]) / 1e9 if len(frames) else 0.0,
        "bytes": int(frames.lengths.sum()),
        "streams": streams,
        "pcap": str(pcap) if pcap is not None else None,
    }
    if as_json:
        print_json(summary)
        return
    console = Console(highlight=False)
    heading = f"{file}: {len(frames)} frames in {summary['seconds']:.6f} s, {summary['bytes']} bytes"
    console.print(heading, soft_wrap=True)
    console.print(_stream_columns(streams))
    if pcap is not None:
        console.print(f"written to {pcap}")


@app.command("show")
def show_command(
    lab: Annotated[str, typer.Argument(metavar="LAB", help="A lab, such as lab03-ipset.")],
    traffic: Annotated[
        str | None, typer.Argument(metavar="[TRAFFIC]", help="A name under `traffic` in lab.yml (all).")
    ] = None,
    tunables: Annotated[
        list[str] | None,
        typer.Option("-t", "--tunable", metavar="NAME=VALUE", help="Override a tunable of the profile."),
    ] = None,
    pcap: Pcap = None,
    limit: Limit = None,
    as_json: Json = False,
    seed: Seed = 1,
) -> None:
    """Show a lab's traffic: streams, rates, traffic classes and first frames, or the declared TCP connections.

    --pcap writes the frames that an engine would send: --limit frames, or one loop of the table.
    """
    project = find_project()
    declared = load_lab(project, lab)
    if limit is not None and limit < 1:
        raise BadInput(f"invalid limit {limit}: must be at least 1", "give --limit a number above zero")
    names = [traffic] if traffic is not None else list(declared.traffic)
    entries = {name: _declared(declared, name) for name in names}
    if tunables:
        entries = {name: _tuned(declared, name, names, tunables) for name in names}
        declared.traffic.update(entries)
    if pcap is not None:
        _reject_capture(pcap, declared, names)
    store = TrafficStore(project, load_topology(project), declared, seed)
    facts: list[dict[str, Any]] = []
    for name, entry in entries.items():
        if entry.connections is not None:
            facts.append({"id": name, "connections": entry.connections.model_dump()})
            continue
        if pcap is not None:
            _write_loops(pcap, store.table(name), limit)
        facts.append(_facts(name, entry, store, declared))
    if as_json:
        print_json({"lab": lab, "traffic": facts, "pcap": str(pcap) if pcap else None})
        return
    console = Console()
    for fact in facts:
        connections = entries[fact["id"]].connections
        if connections is not None:
            _print_connections(console, lab, fact["id"], connections)
        else:
            _print_facts(console, lab, fact)
    if pcap is not None:
        console.print(f"written to {pcap}")


@app.command("astf")
def astf_command(
    lab: Annotated[str, typer.Argument(metavar="LAB", help="A lab, such as lab02-conntrack.")],
    traffic: Annotated[str, typer.Argument(metavar="TRAFFIC", help="A name that declares TCP connections in lab.yml.")],
) -> None:
    """Print a profile for TRex's advanced stateful mode (ASTF) that opens the declared TCP connections."""
    declared = load_lab(find_project(), lab)
    connections = _declared(declared, traffic).connections
    if connections is None:
        there = [name for name, entry in declared.traffic.items() if entry.connections is not None]
        raise BadInput(
            f"{lab} {traffic}: not TCP connections; {lab} has: {', '.join(there) or 'none'}",
            f"fwlab traffic astf {lab} {there[0]}" if there else f"fwlab traffic show {lab} {traffic}",
        )
    typer.echo(astf_profile(lab, traffic, connections), nl=False)


def _declared(lab: Lab, traffic: str) -> Traffic:
    """The entry of lab.yml. Raises BadInput with the names of the lab's traffic."""
    if traffic not in lab.traffic:
        there = ", ".join(lab.traffic) or "none"
        raise BadInput(f"{lab.id}: unknown traffic {traffic}; there are: {there}", f"fwlab traffic show {lab.id}")
    return lab.traffic[traffic]


def _tuned(lab: Lab, name: str, names: list[str], given: list[str]) -> Traffic:
    """The traffic with tunables overridden, written as TRex takes them: name=value, or several separated by commas."""
    if len(names) > 1 or lab.traffic[name].connections is not None:
        others = ", ".join(names)
        raise BadInput(f"-t applies to one traffic with a profile, not to {others}", f"fwlab traffic show {lab.id}")
    pairs = [pair.partition("=") for item in given for pair in item.split(",")]
    if wrong := [key for key, equals, value in pairs if not (key and equals and value)]:
        raise BadInput(f"-t {wrong[0]}: not NAME=VALUE", f"fwlab traffic show {lab.id} {name} -t size=64")
    return lab.traffic[name].tuned(**{key: _value(text) for key, _, text in pairs})


def _value(text: str) -> Value:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _reject_capture(pcap: Path, lab: Lab, names: list[str]) -> None:
    """Raises BadInput unless --pcap is for one traffic with a profile: TCP connections have no frames in advance."""
    framed = [name for name, entry in lab.traffic.items() if entry.connections is None]
    hint = f"fwlab traffic show {lab.id} {framed[0]} --pcap {pcap}" if framed else "omit --pcap"
    if len(names) > 1:
        raise BadInput(f"--pcap requires one traffic; {lab.id} has {', '.join(names)}", hint)
    if names[0] not in framed:
        raise BadInput(f"{lab.id} {names[0]}: TCP connections have no predetermined frames to capture", hint)


def _read_form(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text())
    except OSError as error:
        raise BadInput(f"{file}: cannot be read: {error.strerror}", f"ls -l {file}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: invalid JSON: {error}", _HINT) from error
    form = {"streams": data} if isinstance(data, list) else data
    if not isinstance(form, dict) or "streams" not in form:
        raise BadInput(f"{file}: contains no streams", _HINT)
    for field, lowest in (("packet_limit", 1), ("direction", 0)):
        value = form.get(field)
        if value is not None and (not isinstance(value, int) or value < lowest):
            raise BadInput(f"{file}: invalid {field} {value!r}: must be a number of at least {lowest}", _HINT)
    return form


def _write_loops(pcap: Path, table: Table, limit: int | None) -> None:
    """Write `limit` frames to a capture, repeating the table's loop as an engine does; by default one loop."""
    frames, loop_ns = table.frames, table.loop_ns
    wanted = limit if limit is not None else len(frames)
    numbers = [number % len(frames) for number in range(wanted)]
    times = [int(frames.times_ns[n]) + i // len(frames) * loop_ns for i, n in enumerate(numbers)]
    write_pcap(pcap, (frames[n] for n in numbers), times)


def _facts(name: str, declared: Traffic, store: TrafficStore, lab: Lab) -> dict[str, Any]:
    from scapy.layers.l2 import Ether  # takes half a second to import, which other commands avoid

    table = store.table(name)
    frames = table.frames
    return {
        "id": name,
        "profile": declared.profile,
        "tunables": lab.tunables(name, store.seed),
        "frames": len(frames),
        "loop_seconds": table.loop_ns / 1e9,
        "exact_loop": table.exact,
        "streams": _per_stream(store.streams(name), frames),
        "classes": count_classes(frames, lab.classes),
        "first_frames": [
            {
                "seconds": int(frames.times_ns[n]) / 1e9,
                "stream": int(frames.stream[n]) + 1,
                "bytes": int(frames.lengths[n]),
                "summary": Ether(frames[n]).summary(),
            }
            for n in range(min(FIRST_FRAMES, len(frames)))
        ],
    }


def _per_stream(streams: list[dict[str, Any]], frames: Frames) -> list[dict[str, Any]]:
    return [
        {
            "stream": stream.index + 1,
            "name": stream.name,
            "mode": stream.mode.type,
            "pps": stream.pps,
            "mean_bytes": stream.mean_length,
            "frames": int((frames.stream == stream.index).sum()),
        }
        for stream in parse_streams(streams)
    ]


def _stream_columns(streams: list[dict[str, Any]]) -> Columns:
    columns = Columns("stream", "name", "mode", "packets/s", "mean bytes", "frames", box=None)
    for column in columns.columns[3:]:
        column.justify = "right"
    for stream in streams:
        rates = f"{stream['pps']:g}", f"{stream['mean_bytes']:g}"
        columns.add_row(str(stream["stream"]), str(stream["name"] or ""), stream["mode"], *rates, str(stream["frames"]))
    return columns


def _print_facts(console: Console, lab: str, fact: dict[str, Any]) -> None:
    tunables = " ".join(f"{name}={value}" for name, value in fact["tunables"].items())
    heading = f"[bold]{lab} {fact['id']}[/bold]: {fact['profile']} {tunables}".rstrip()
    console.print(heading, highlight=False, soft_wrap=True)
    cut = "" if fact["exact_loop"] else " (truncated to the table's size)"
    loop = f"  {fact['frames']} frames, repeated every {fact['loop_seconds']:g} s at the profile's own rates{cut}"
    console.print(loop, highlight=False, soft_wrap=True)
    console.print(_stream_columns(fact["streams"]))
    classes = ", ".join(f"{name} {count}" for name, count in fact["classes"].items() if count)
    console.print(f"  classes: {classes}", highlight=False, soft_wrap=True)
    for frame in fact["first_frames"]:
        place = f"  {frame['seconds']:.6f}  stream {frame['stream']}  {frame['bytes']:5} bytes"
        console.print(f"{place}  {frame['summary']}", highlight=False, soft_wrap=True, markup=False)


def _print_connections(console: Console, lab: str, name: str, declared: Connections) -> None:
    clients, servers = (IPv4Network(prefix).num_addresses for prefix in (declared.clients, declared.servers))
    background = "none"
    if declared.background is not None:
        rate = f"{declared.background_pps:g} packets/s of the generator's clock"
        background = f"the traffic {declared.background}, {rate}"
    lines = [
        f"[bold]{lab} {name}[/bold]: TCP connections, one object each",
        f"  clients     {declared.clients}, {clients} addresses",
        f"  servers     {declared.servers}, {servers} addresses, port {declared.port}",
        f"  object      {declared.object_bytes} bytes",
        f"  concurrent  {declared.concurrent} open at a time",
        f"  background  {background}",
    ]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
