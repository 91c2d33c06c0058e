# SPDX-License-Identifier: GPL-2.0-or-later
"""Merge keys of YAML copy entries; one that merges what is merged would copy without end."""

from __future__ import annotations

import pytest

from fwlab.checkout.yaml_files import yaml_in
from fwlab.model.errors import BadInput


def merged(levels: int) -> bytes:
    """A mapping of ten entries, merged tenfold on each level."""
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(10)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, levels + 1)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}\n", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        ("b: {<<: {x: 1}, y: 2}\n", {"b": {"x": 1, "y": 2}}),
        ('b: {"<<": 1}\n', {"b": {"<<": 1}}),
    ],
)
def test_ordinary_merge_keys(text: str, data: object) -> None:
    assert yaml_in(text.encode(), "x.yml", "fix it") == data


def test_merge_keys_copy_a_limited_number_of_entries() -> None:
    made = yaml_in(merged(3), "x.yml", "fix it")
    assert isinstance(made, dict)
    assert made["a3"] == {f"k{n}": 1 for n in range(10)}
    for text in (merged(4), merged(30), merged(4).replace(b"<<:", b"!!merge x:")):
        with pytest.raises(BadInput, match=r"x\.yml:5: not YAML: over 100000 merged entries"):
            yaml_in(text, "x.yml", "fix it")
