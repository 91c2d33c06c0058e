# SPDX-License-Identifier: GPL-2.0-or-later
"""The grading itself. Collected by `pytest --testinfra`; parametrised by the plugin (../pytest_plugin.py)."""

from __future__ import annotations

from fwlab.grading.grading_session import why_not_loaded
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.kernel_state import absent_from
from fwlab.grading.outcomes import failed, hold, hold_case, hold_failure


def test_dut_forwards(grading, lab):
    """The DUT is a router: without that nothing below means anything."""
    grading.session(lab)
    assert grading.host(lab).sysctl("net.ipv4.ip_forward") == 1


def test_package(grading, lab, package):
    assert grading.host(lab).package(package).is_installed, f"the DUT lacks the package {package}"


def test_module(grading, lab, module):
    """Available, not loaded: the start state has none of them."""
    done = grading.host(lab).run("modinfo %s", module)
    assert done.rc == 0, f"the DUT's kernel lacks the module {module}"


def test_sysctl(grading, lab, sysctl):
    name, value = sysctl
    assert str(grading.host(lab).sysctl(name)) == str(value)


def test_case(grading, lab, case):
    """Every expectation on the case, absolute and as a ratio within this session."""
    hold_case(*grading.case_verdicts(lab, case))


def test_loaded(grading, lab, work):
    """What the kernel holds is what the files say, as the tools themselves list it."""
    measured = grading.measured(lab, work)
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    reason = why_not_loaded(measured)
    if reason is not None:
        failed(reason)
    absent = absent_from(grading.host(lab), grading.loaded(lab, work).files)
    if absent is not None:
        # The DUT may have been put back meanwhile. Then it holds everything again, or cannot be measured.
        absent = absent_from(grading.host(lab), grading.loaded(lab, work, anew=True).files)
    if absent is not None:
        failed(absent)


def test_check(grading, lab, work, check):
    """One check of one exercise on one student's ruleset."""
    hold(grading.verdicts(lab, work)[check.place])


def test_grader_refuses(grading, lab, work):
    """A start, a mistake or a wrong variant that passed would mean that the exercise tests too little."""
    hold_failure(work.name, grading.verdicts(lab, work), grading.measured(lab, work).refused, work.fails)
