# SPDX-License-Identifier: GPL-2.0-or-later
"""What others publish, on its way into an image: copied or downloaded once, and proved by its checksum before use.

It lies under its own name only after it was proved, so that nothing half-written is ever found there.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from box_cache import BuildError

#: Connecting, and each read, may take so long (s).
PATIENCE_S = 60


@dataclass(frozen=True)
class Wanted:
    """One published file. `of` says what it is; `url_name` and `sum_name` are the variables that named it."""

    of: str
    url: str
    algorithm: str
    digest: str
    url_name: str
    sum_name: str

    @property
    def path(self) -> Path | None:
        """The file itself where it is on this host; None where it has to be downloaded."""
        scheme = urlsplit(self.url).scheme
        if scheme in ("http", "https", "ftp"):
            return None
        return Path(unquote(urlsplit(self.url).path) if scheme == "file" else self.url).expanduser().absolute()

    def holds(self, path: Path) -> bool:
        """Whether `path` is the file that is wanted."""
        return path.is_file() and self._sum(path) == self.digest

    def prove(self, found: str) -> None:
        """Raises BuildError unless this is the digest that is wanted."""
        if found != self.digest:
            raise BuildError(
                f"{self.url}: its {self.algorithm} is {found}, but {self.sum_name} says {self.digest}",
                "get both again from where they are published; if the file is the right one, correct the sum",
            )

    def prove_in_place(self) -> None:
        """Raises BuildError unless the file at `path` can be read and is the wanted one."""
        try:
            found = self._sum(self.path)
        except OSError as error:
            raise self._unreadable(error) from error
        self.prove(found)

    def fetch(
        self,
        kept: Path,
        say: Callable[[str], None],
        check: Callable[[Path], object],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Copy or download to `kept`, by way of a draft that is gone again unless it is proved and passes `check`.

        Raises BuildError when `stopped` says so while it downloads.
        """
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        try:
            if self.path is None:
                say(f"{self.of}: downloading it from {self.url}")
                self.prove(self._download(draft, stopped))
            else:
                try:
                    self.path.open("rb").close()
                except OSError as error:
                    raise self._unreadable(error) from error
                shutil.copyfile(self.path, draft)
                self.prove(self._sum(draft))
            check(draft)
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)

    def _unreadable(self, error: OSError) -> BuildError:
        return BuildError(f"{self.url_name}: {self.path}: {error.strerror}", "give the path of a file, or an address")

    def _sum(self, path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, self.algorithm).hexdigest()

    def _download(self, draft: Path, stopped: Callable[[], bool]) -> str:
        """Writes what the address holds to `draft`; returns its digest."""
        digest, got = hashlib.new(self.algorithm), 0
        try:
            with urllib.request.urlopen(self.url, timeout=PATIENCE_S) as answer, draft.open("wb") as file:
                size = answer.headers.get("Content-Length")
                while part := answer.read(1 << 20):
                    if stopped():
                        raise BuildError(f"{self.of}: stopped while it was downloaded")
                    digest.update(part)
                    got += file.write(part)
        except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise self._lost(str(reason)) from error
        if size is not None and got != int(size):
            raise self._lost(f"the connection ended after {got} of {size} bytes")
        return digest.hexdigest()

    def _lost(self, reason: str) -> BuildError:
        return BuildError(f"{self.url}: {reason}", f"download it by other means and set {self.url_name} to its path")
