# SPDX-License-Identifier: GPL-2.0-or-later
"""Sampling: stacks from perf's output, the order of perf and packets, and the arguments of `fwlab profile`."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from fwlab.cli.main import app
from fwlab.cli.perf_profile import worth
from fwlab.dut.linux.agent.perf_samples import clocks, fold
from fwlab.metrics.call_stacks import MIN_SAMPLES, RATES, SECONDS, sample
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import Measured, Overload
from tests.fakes.factories import attempt

#: As `perf script -F comm,ip,sym` prints it.
PRINTED = """ksoftirqd/0
\tffffffff81a0b1c2 ip_forward
\tffffffff81a0b000 ip_rcv
\tffffffffc0123456 virtnet_poll

kworker/0:1-eve
\tffffffff81a0b1c2 gc_worker

ksoftirqd/0
\tffffffff81a0b1c9 ip_forward
\tffffffff81a0b000 ip_rcv
\tffffffffc0123456 virtnet_poll

python3
\t    7f0000000000 [unknown]
"""


@pytest.mark.parametrize(
    ("printed", "stacks"),
    [
        (
            PRINTED.splitlines(),
            {
                "ksoftirqd/0;virtnet_poll;ip_rcv;ip_forward": 2,
                "kworker/0:1-eve;gc_worker": 1,
                "python3;[unknown]": 1,
            },
        ),
        (["a", "\tffff0000", "\tffff1111 outer"], {"a;outer;[unknown]": 1}),
        ([], {}),
    ],
    ids=["perf script", "an address without a name", "nothing"],
)
def test_equal_stacks_are_counted_outermost_first(printed: list[str], stacks: dict[str, int]) -> None:
    assert fold(printed) == stacks


def test_perf_accepts_the_arguments(tmp_path: Path) -> None:
    """perf only parses its arguments here. The image has perf; a host need not have it."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")

    def asked(events: str) -> int:
        argv = ["perf", "record", "--dry-run", "-e", events, "-o", str(tmp_path / "none"), "true"]
        return subprocess.run(argv, capture_output=True).returncode

    assert asked(clocks(RATES)) == 0
    assert asked(clocks(RATES).replace("freq", "hertz")) != 0


# ---- the order of things -----------------------------------------------------------------------------------------


def sampled(said: list[str], stacks: dict[str, int], level: int = 0, dies: bool = False) -> Measured:
    """What is found on such nodes, after trials of capacity at this throttle level."""

    @contextlib.contextmanager
    def slowed(step: int) -> Iterator[None]:
        said.append(f"slow {step}")
        yield
        said.append("full speed")

    def collect(timeout: float) -> None:
        if dies:
            raise CannotMeasure("lost the connection to the dut")
        said.append("collect")

    def play() -> SimpleNamespace:
        said.append("play")
        return SimpleNamespace(stop=lambda: said.append("stop"), abandon=lambda: said.append("abandon"))

    dut = SimpleNamespace(
        prepare_stacks=lambda rates: said.append(f"perf at {len(rates)} rates"),
        arm_stacks=lambda seconds: said.append(f"arm {seconds:g} s"),
        collect_stacks=collect,
        read_stacks=lambda: said.append("read") or stacks,
    )
    nodes: Any = SimpleNamespace(dut=dut, throttle=slowed, engine=SimpleNamespace(start=play))
    spec = MeasurementSpec(id="x", title="X", ruleset="x", files=[], metrics=["capacity"], traffic="flood")
    return sample(MeasuringSession(nodes), spec, attempt(1000).plus(Overload(throttle_level=level)))


def test_perf_starts_before_the_packets_and_is_read_after_them() -> None:
    said: list[str] = []
    found = sampled(said, {"net_rx_action;poll": MIN_SAMPLES}, level=2)
    perf, arm = f"perf at {len(RATES)} rates", f"arm {SECONDS:g} s"
    assert said == [perf, "slow 2", arm, "play", "collect", "full speed", "stop", "read"]
    assert found.stacks == {"net_rx_action;poll": MIN_SAMPLES}
    assert not found.problems


def test_what_samples_are_worth_is_told() -> None:
    assert worth(633) == "633 samples: a share of 10 % is accurate to about 1.2 percentage points"
    assert worth(0) == "no samples"


def test_too_few_samples_are_a_problem() -> None:
    found = sampled([], {"net_rx_action;poll": MIN_SAMPLES - 1})
    assert found.problems == [
        f"the DUT was sampled {MIN_SAMPLES - 1} times at work; at least {MIN_SAMPLES} say something"
    ]


def test_a_node_that_dies_leaves_no_traffic_behind() -> None:
    said: list[str] = []
    with pytest.raises(CannotMeasure):
        sampled(said, {}, dies=True)
    assert said[-1] == "abandon"


# ---- the command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no-such-case", "has no case or exercise no-such-case"),
        ("iptables-rules", "matches several cases: raw-drop-after-5, iptables-rules-16"),
        ("load-each-nft-32", "only a case with a traffic profile can be sampled"),
    ],
)
def test_cases_without_a_profile_are_refused_before_any_machine_starts(case: str, message: str) -> None:
    result = CliRunner().invoke(app, ["profile", "lab03-ipset", case, "--testbed", "virtual"])
    assert isinstance(result.exception, BadInput)
    assert message in result.exception.message
