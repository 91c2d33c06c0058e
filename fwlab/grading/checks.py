# SPDX-License-Identifier: GPL-2.0-or-later
"""The grading itself. Collected by `pytest --testinfra`; parametrised by the plugin (../pytest_plugin.py)."""

from __future__ import annotations

from fwlab.grading.grading_session import why_not_loaded
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.kernel_state import absent_from
from fwlab.grading.outcomes import failed, hold, hold_case, hold_failure


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
    hold_case(*classroom.case_verdicts(lab, case))


def test_loaded(classroom, lab, work):
    """What the kernel holds is what the files say, as the tools themselves list it."""
    measured = classroom.measured(lab, work)
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    reason = why_not_loaded(measured)
    if reason is not None:
        failed(reason)
    absent = absent_from(classroom.host(lab), classroom.loaded(lab, work).files)
    if absent is not None:
        # The DUT may have been put back meanwhile. Then it holds everything again, or cannot be measured.
        absent = absent_from(classroom.host(lab), classroom.loaded(lab, work, anew=True).files)
    if absent is not None:
        failed(absent)


def test_check(classroom, lab, work, check):
    """One check of one exercise on one student's ruleset."""
    hold(classroom.verdicts(lab, work)[check.place])


def test_grader_refuses(classroom, lab, work):
    """A start, a mistake or a wrong variant that passed would mean that the exercise tests too little."""
    hold_failure(work.name, classroom.verdicts(lab, work), classroom.measured(lab, work).refused, work.fails)
