# SPDX-License-Identifier: GPL-2.0-or-later
"""The grading itself. Collected by `pytest --testinfra`; parametrised by the plugin (../pytest_plugin.py)."""

from __future__ import annotations

from fwlab.doors.grading.loaded import missing
from fwlab.doors.pytest_plugin import Inconclusive
from fwlab.words.results import Measured
from fwlab.words.verdict import Outcome, Verdict, overall


def test_dut_forwards(classroom, lab):
    """The DUT is a router: without that nothing below means anything."""
    classroom.session(lab)
    assert classroom.host(lab).sysctl("net.ipv4.ip_forward") == 1


def test_package(classroom, lab, package):
    assert classroom.host(lab).package(package).is_installed, f"the DUT lacks the package {package}"


def test_module(classroom, lab, module):
    """Available, not loaded: the start state has none of them."""
    done = classroom.host(lab).run("modinfo %s", module)
    assert done.rc == 0, f"the DUT's kernel lacks the module {module}"


def test_sysctl(classroom, lab, sysctl):
    name, value = sysctl
    assert str(classroom.host(lab).sysctl(name)) == str(value)


def test_case(classroom, lab, case):
    """Every expectation on the case, absolute and as a ratio within this session."""
    measured, verdicts = classroom.case_verdicts(lab, case)
    for_all(measured, verdicts)


def test_loaded(classroom, lab, work):
    """What the kernel holds is what the files say, as the tools themselves list it."""
    verdicts = classroom.verdicts(lab, work)
    if any(v.text.startswith("not loaded") for v in verdicts):
        assert work.expected is Outcome.FAIL, verdicts[0].text
        return
    files = classroom.loaded(lab, work).files
    for file in files:
        absent = missing(classroom.host(lab), file)
        assert absent is None, f"{file.name}: loaded, but the DUT does not hold: {absent}"


def test_check(classroom, lab, work, check):
    """One check of one exercise on one student's ruleset."""
    hold(classroom.verdicts(lab, work)[check])


def test_grader_refuses(classroom, lab, work):
    """A start or a mistake that passed would mean that the exercise tests nothing."""
    verdicts = classroom.verdicts(lab, work)
    outcome = overall([v.outcome for v in verdicts])
    if outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive("; ".join(v.text for v in verdicts if v.outcome is Outcome.INCONCLUSIVE))
    assert outcome is Outcome.FAIL, f"{work.name} passes every check"


def for_all(measured: Measured, verdicts: list[Verdict]) -> None:
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    assert measured.refused is None, measured.refused
    for verdict in verdicts:
        hold(verdict)


def hold(verdict: Verdict) -> None:
    """A verdict as a test's outcome, in the words that the lab has for it."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(verdict.text)
    value = "not measured" if verdict.value is None else f"{verdict.value:g}"
    base = f" of {verdict.relative_to}" if verdict.relative_to else f" {verdict.metric.unit}"
    measured = f"{verdict.check}: {value}{base}, wanted {verdict.low:g} to {verdict.high:g}"
    assert verdict.outcome is Outcome.PASS, f"{verdict.text}\n{measured}\nwhy: {verdict.why}"
