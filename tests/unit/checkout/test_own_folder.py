# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that is killed leaves its temporary folder behind, and the next one of its kind removes it."""

import subprocess
import sys
from pathlib import Path

from fwlab.checkout.own_folder import own_folder

HELD = """
import sys
from pathlib import Path
from fwlab.checkout.own_folder import own_folder
with own_folder("kind-", Path(sys.argv[1])) as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_and_what_lives_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        other = Path(process.stdout.readline().strip())
        with own_folder("kind-", tmp_path) as own:
            assert {other, own} == set(tmp_path.iterdir())
        process.kill()
    assert list(tmp_path.iterdir()) == [other]
    with own_folder("else-", tmp_path):
        assert (other / "file").exists()
    with own_folder("kind-", tmp_path) as own:
        assert list(tmp_path.iterdir()) == [own]
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "kind-link").symlink_to("elsewhere")
    with own_folder("kind-", tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "kind-link"}
