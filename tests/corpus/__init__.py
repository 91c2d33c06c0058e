# SPDX-License-Identifier: GPL-2.0-or-later
"""Ordinary rulesets, one per feature: a file of YAML for each kind, with the texts by feature.

A Linux ruleset states its effect: `# holds: N` rules, entries and routes, or `# shows: TEXT` that the DUT's tools print
only while it is loaded. `combined.yml` has those of which several files belong together, with the texts by file name.
"""

from pathlib import Path

import yaml

FOLDER = Path(__file__).parent
PF, COMBINED = FOLDER / "pf.yml", FOLDER / "combined.yml"


def pf_rulesets() -> dict[str, str]:
    """The texts of pf.conf, by feature."""
    return dict(yaml.safe_load(PF.read_text()))


def linux_rulesets() -> dict[str, dict[str, str]]:
    """The texts of each Linux ruleset's files by file name, by the ruleset's name, such as `masquerade.nft`."""
    single = sorted(set(FOLDER.glob("*.yml")) - {PF, COMBINED})
    names = {f"{name}.{path.stem}": text for path in single for name, text in yaml.safe_load(path.read_text()).items()}
    rulesets = {name: {name: text} for name, text in names.items()} | yaml.safe_load(COMBINED.read_text())
    return dict(sorted(rulesets.items()))
