# SPDX-License-Identifier: GPL-2.0-or-later
"""The Vagrantfile and the plug-in without a machine: names, commands, hooks, and error messages."""

import fcntl
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.machines_checkout import LAB, MACHINES, OFFSET, TOPOLOGY, build, declare, small_checkout
from tests.fakes.programs import needs
from tests.fakes.vagrant_script import shown, vagrant

pytestmark = needs("vagrant")

#: Of lab03's machines.
FIRST_PORT = TOPOLOGY.ports.ssh_base + 3 * TOPOLOGY.ports.per_lab + OFFSET

#: All machines run, as Vagrant sees it, and every action on one is noted.
RUNNING = """
require "#{__dir__}/provision/vagrant/provider"
FirewallLab::Provider.prepend(Module.new { def state = Vagrant::MachineState.new(:running, "running", "running") })
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def running(checkout: Path) -> None:
    with (checkout / "Vagrantfile").open("a") as file:
        file.write(RUNNING)


# ---- names -------------------------------------------------------------------------------------------------------


def test_the_beginning_of_a_labs_name_is_enough(checkout: Path) -> None:
    done = vagrant(checkout, "status", "lab03", "--machine-readable", VAGRANT_LOG="debug")
    assert done.returncode == 0, done.stderr
    named = {line.split(",")[1] for line in done.stdout.splitlines() if ",state," in line}
    evaluated = set(re.findall(r"Loading from: \d+_machine_(\S+) \(evaluating\)", done.stderr))
    assert evaluated == named == set(MACHINES.values()), "the configuration of all labs takes seconds"


def test_a_labs_name_means_its_machines(checkout: Path) -> None:
    """In one process; what a command does with a machine is left out. Without a name, those that exist are halted."""
    running(checkout)
    made = checkout / ".vagrant/machines/lab11-sriov-sink/libvirt/id"
    made.parent.mkdir(parents=True)
    made.write_text("0")
    commands = ["suspend", "resume", "provision", "halt", "snapshot save LAB one", "snapshot list", "port", "halt ALL"]
    found = shown(
        checkout,
        f"""
        names = []
        Vagrant::Plugin::V2::Command.prepend(Module.new do
          define_method(:with_target_vms) do |*words, **options|
            super(*words, **options) {{ |machine, *| names << machine.name.to_s }}
          end
        end)
        {json.dumps([one if one.split()[-1] in ("one", "ALL") else f"{one} LAB" for one in commands])}.map do |command|
          names.clear
          environment.cli(*command.sub("LAB", "{LAB}").sub("ALL", "").split)
          names.sort
        end
        """,
    )
    assert dict(zip(commands, found, strict=True)) == {
        **dict.fromkeys(commands, sorted(MACHINES.values())),
        "port": [LAB],
        "halt ALL": ["lab11-sriov-sink"],
    }


def test_ssh_config_names_each_machine_and_its_port(checkout: Path) -> None:
    running(checkout)
    done = vagrant(checkout, "ssh-config", LAB)
    assert done.returncode == 0, done.stderr
    hosts = re.findall(r"^Host (\S+)\n  HostName 127.0.0.1\n  User vagrant\n  Port (\d+)$", done.stdout, re.MULTILINE)
    assert dict(hosts) == {name: str(FIRST_PORT + number) for number, name in enumerate(MACHINES.values())}
    assert done.stdout.count(f"IdentityFile {checkout}/.fwlab/ssh/id_ed25519\n") == 3


def test_a_machine_is_found_by_its_id_from_another_folder(checkout: Path, tmp_path: Path) -> None:
    """Vagrant has not read the Vagrantfile when it looks for the machine."""
    running(checkout)
    index = checkout / "vagrant-home/data/machine-index/index"
    index.parent.mkdir(parents=True)
    entry = {"name": LAB, "provider": "libvirt", "state": "running", "vagrantfile_path": str(checkout)}
    entry |= {"local_data_path": str(checkout / ".vagrant"), "vagrantfile_name": None, "updated_at": None}
    entry |= {"extra_data": {}, "architecture": None}
    index.write_text(json.dumps({"version": 1, "machines": {"0123456789abcdef0123456789abcdef": entry}}))
    done = vagrant(checkout, "ssh-config", "0123456", cwd=tmp_path)
    assert f"Host {LAB}\n  HostName 127.0.0.1\n" in done.stdout, done.stderr
    assert f"Port {FIRST_PORT + 1}\n" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_a_path_may_be_written_in_any_script(tmp_path: Path, locale: str) -> None:
    """Also in a locale that the host does not have."""
    there = small_checkout(tmp_path / "Übung mit Räumen/firewall lab")
    running(there)
    done = vagrant(there, "ssh-config", LAB, LC_ALL=locale)
    assert (done.returncode, f'IdentityFile "{there}' in done.stdout) == (0, True), done.stdout + done.stderr


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "extra", "message"),
    [
        (["up", "lab99-no"], {}, "there is no lab or machine lab99-no; the labs are: lab03-ipset, lab11-sriov"),
        (["status"], {"FWLAB_TESTBED": "hot"}, "FWLAB_TESTBED=hot: unknown testbed; there are: real, virtual"),
    ],
)
def test_errors_are_one_message_with_a_hint(
    checkout: Path, words: list[str], extra: dict[str, str], message: str
) -> None:
    done = vagrant(checkout, *words, **extra)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert message in said
    assert "next: " in said
    assert ".rb:" not in said, "a backtrace"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("up", "vagrant up needs the name of a lab; the labs are: lab03-ipset, lab11-sriov"),
        ("ssh", "vagrant ssh needs the name of a lab; the labs are: lab03-ipset, lab11-sriov"),
        ("ssh lab99-no", "there is no lab or machine lab99-no; the labs are: lab03-ipset, lab11-sriov"),
        ("up lab11-sriow", "next: vagrant up lab11-sriov"),
    ],
)
def test_a_wrong_name_is_an_error_of_vagrants(inside: dict[str, Any], command: str, message: str) -> None:
    assert message in inside["errors"][command]
    assert "next: " in inside["errors"][command]


def test_without_fwlab_the_next_command_is_make_setup(checkout: Path) -> None:
    (checkout / ".venv").unlink()
    done = vagrant(checkout, "status")
    assert done.returncode == 2, done.stderr
    assert f"there is no .venv in {checkout}\n  next: make setup\n" in done.stdout + done.stderr


@needs("virsh")
def test_missing_boxes_are_named_before_anything_is_made(checkout: Path) -> None:
    done = vagrant(checkout, "up", LAB, FWLAB_LIBVIRT_URI="test:///default")
    said = done.stdout + done.stderr
    assert done.returncode == 2, done.stderr
    assert said.count("boxes are not built (generator, dut-linux, sink): run `make boxes`\n  next: make boxes") == 1


@needs("virsh")
def test_the_way_to_the_box_of_a_dut_is_named(checkout: Path) -> None:
    declare(checkout, LAB, systems=["freebsd", "linux"])
    build(checkout, "generator", "dut-linux", "sink")
    done = vagrant(checkout, "up", LAB, FWLAB_LIBVIRT_URI="test:///default")
    hint = "packer/build dut-freebsd; or without it, on linux only: FWLAB_DUT=linux and the same command"
    said = f"{LAB}: its DUT runs freebsd, and the box dut-freebsd is not built\n  next: {hint}\n"
    assert said in done.stdout + done.stderr
    assert done.returncode == 2, done.stderr


# ---- the plug-in -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the plug-in does in Vagrant's process, before the boxes are built."""
    return shown(
        small_checkout(tmp_path_factory.mktemp("inside") / "checkout"),
        f"""
        require "#{{Dir.pwd}}/provision/vagrant/actions"
        stack = lambda do |action, *middleware|
          builder = Vagrant::Action::Builder.new
          builder.primary = true
          middleware.each {{ |one, *arguments| builder.use(one, *arguments) }}
          env = {{ machine: machine.("{LAB}"), action_name: :"machine_action_#{{action}}", ui: ui }}
          names = builder.to_app(env).actions.map {{ |one| one.class.name }}
          names.grep(/FirewallLab|ProviderLibvirt/).map {{ |name| name.split("::").last }}
        end
        steps_if = lambda do |done|
          steps, said = [], []
          loud = Vagrant::UI::Silent.new
          loud.define_singleton_method(:warn) {{ |line, *| said << line }}
          FirewallLab::Plan.of(environment).define_singleton_method(:fwlab) do |step, name, *|
            steps << step
            JSON.generate(done: done, warnings: ["#{{step}} #{{name}}"])
          end
          app = ->(_) {{ steps << "booted" }}
          FirewallLab::Actions::Continue.new(app, {{}}).call({{ machine: machine.("{LAB}"), ui: loud }})
          [steps, said]
        end
        warning = lambda do |version|
          FirewallLab::Versions.warning("2.3.4", version)
        rescue FirewallLab::Problem => problem
          problem.error_message
        end
        error = lambda do |command|
          environment.cli(*command.split)
        rescue Vagrant::Errors::VagrantError => problem
          problem.message
        end
        off = lambda do
          provided::ShutdownDomain.prepend(Module.new do
            def call(env)
              raise Fog::Errors::TimeoutError, "The specified wait_for timeout (60 seconds) was exceeded"
            end
          end)
          result, said = :nothing, []
          builder = Vagrant::Action::Builder.new
          builder.use(Vagrant::Action::Builtin::Call, provided::ShutdownDomain, :shutoff, :running) do |env, _|
            result = env[:result]
          end
          ui.define_singleton_method(:warn) {{ |line, *| said << line }}
          env = {{ machine: machine.("{LAB}"), action_name: :machine_action_halt, ui: ui }}
          environment.action_runner.run(builder, env)
          [result, said]
        end
        said = lambda do
          said = []
          [ui, environment.ui].each {{ |one| one.define_singleton_method(:info) {{ |line, *| said << line }} }}
          quiet = FirewallLab::Actions::Quiet.new(ui)
          [" -- Memory: 1024M", "    -> value=-global, ", "Starting domain."].each {{ |line| quiet.info(line) }}
          quiet.rewriting {{ |one| one.info("Uploading") }}
          FirewallLab::Plan.of(environment).started = ["{LAB}"]
          environment.batch {{ |_| }}
          said
        end
        {{
          up: stack.(:up, provided::CreateDomain, provided::CreateNetworkInterfaces),
          halt: stack.(:halt, [provided::ShutdownDomain, :shutoff, :running]),
          reload: stack.(:reload, [provided::ShutdownDomain, :shutoff, :running]),
          destroy: stack.(:destroy, provided::DestroyDomain),
          restored: steps_if.(true),
          booted: steps_if.(false),
          provider: FirewallLab::Versions.provider[/^[0-9.]+$/],
          errors: ["up", "ssh", "ssh lab99-no", "up lab11-sriow"].to_h {{ |command| [command, error.(command)] }},
          warnings: ["0.11.2", "0.99.0", "0.10.8"].to_h {{ |version| [version, warning.(version)] }},
          off: off.(),
          said: said.()
        }}
        """,
    )


def test_the_hooks_are_in_the_providers_actions(inside: dict[str, Any]) -> None:
    """Each stands where the provider's own middleware is; another version of it may have moved that."""
    assert {action: inside[action] for action in ("up", "halt", "reload", "destroy")} == {
        "up": ["Prepare", "CreateDomain", "CreateNetworkInterfaces", "Continue", "Record"],
        "halt": ["PowerOff", "ShutdownDomain"],
        "reload": ["Prepare", "PowerOff", "ShutdownDomain", "Record"],
        "destroy": ["DestroyDomain", "Record"],
    }


@pytest.mark.parametrize(
    ("which", "steps"), [("restored", ["restore", "booted"]), ("booted", ["restore", "booted", "save"])]
)
def test_a_machine_is_saved_unless_it_continues_from_a_saved_state(
    inside: dict[str, Any], which: str, steps: list[str]
) -> None:
    assert inside[which] == [steps, [f"{step} {LAB}" for step in steps if step != "booted"]]


def test_versions_that_were_not_tried_are_named(inside: dict[str, Any]) -> None:
    assert inside["provider"]
    tried, newer, older = inside["warnings"].values()
    assert tried is None
    assert newer.endswith(
        "with vagrant-libvirt 0.99.0 was not tried with this project (tried: 2.3.4 with 0.11.2, 2.3.8.dev with 0.12.2)"
    )
    assert older.endswith(
        "vagrant-libvirt 0.10.8 is too old: 0.11.2 or newer is needed\n  next: provision/host/install"
    )


def test_the_provider_asks_neither_guest_nor_host(checkout: Path) -> None:
    (checkout / "host.yml").write_text("macvtap: {generator-dut: {nic: dummy}, dut-sink: {nic: enp9s0}}\n")
    driver, address, networks, devices = shown(
        checkout,
        f"""
        driver = machine.("{LAB}").provider.driver
        [driver.class.name, driver.get_ipaddress, driver.list_all_networks, driver.host_devices]
        """,
        FWLAB_LINK="macvtap",
        FWLAB_TESTBED="real",
    )
    assert (driver, address, networks) == ("FirewallLab::Driver", "127.0.0.1", [])
    assert len(devices) == 3
    assert "enp9s0" in devices


def test_a_guest_that_does_not_shut_down_is_powered_off(inside: dict[str, Any]) -> None:
    """The provider waits for the guest and gets a timeout error from its library; then it powers the guest off."""
    assert inside["off"] == [False, ["does not shut down within 60 s: switching it off"]]


def test_up_ends_with_what_to_type_and_without_the_providers_settings(inside: dict[str, Any]) -> None:
    ends = f"{LAB} is up: `fwlab run {LAB}`, or `vagrant ssh {LAB}`"
    assert inside["said"] == ["Starting domain.", "Uploading", ends]


def test_what_is_measured_is_ended_only_by_force(checkout: Path) -> None:
    path = checkout / ".fwlab" / LAB / "session.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"lab": LAB, "command": "fwlab run lab03", "pid": 12, "since": "10:00:00"}))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = [vagrant(checkout, *words.split()) for words in ("halt", f"snapshot restore {LAB} one")]
        forced = vagrant(checkout, "destroy", "-f", LAB)
    for done in refused:
        assert done.returncode == 2, done.stderr
        assert f"{LAB} is in use by `fwlab run lab03` (pid 12, since 10:00:00)" in done.stderr
    assert forced.returncode == 0, forced.stderr
