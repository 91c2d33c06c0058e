# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls in comments of pages: one named function and its arguments, which are literals. Nothing there is evaluated."""

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Result = TypeVar("Result")


def call(text: str, functions: Mapping[str, Callable[..., Result]]) -> Result:
    """What the named function returns. Raises ValueError for any other text, and what the function raises."""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a call: {error.msg}") from error
    if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
        raise ValueError('not a call of one function, such as cost("raw-drop")')
    if parsed.func.id not in functions:
        raise ValueError(f"no function {parsed.func.id}; there are {', '.join(functions)}")
    if None in (keyword.arg for keyword in parsed.keywords):
        raise ValueError("not a call with literals: **")
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}
    return functions[parsed.func.id](*map(ast.literal_eval, parsed.args), **named)


def methods(owner: object) -> dict[str, Callable[..., Any]]:
    """The public methods of an object, by name."""
    return {name: getattr(owner, name) for name in vars(type(owner)) if not name.startswith("_")}
