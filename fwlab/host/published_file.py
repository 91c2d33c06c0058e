# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that others publish, each by its address and checksum, and the room that they and what is made of them need.

A file gets its name in the cache only after it is verified, so nothing half-written is ever found there.

Not pooch: the file may be a path of this host that is used in place, an interrupted build has to stop the download,
errors name the environment variable that gave the address, and a broken connection is distinguished from a wrong
checksum. pooch leaves all of that to the caller, and brings requests.
"""

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

from fwlab.model.errors import BuildError

#: The value of a variable such as FWLAB_TREX_URL that leaves the file out.
NONE = "none"
#: For connecting and for each read (s).
TIMEOUT_S = 60


@dataclass(frozen=True)
class PublishedFile:
    """A file that someone else publishes.

    what       what it is, for messages
    url        an address, or a path of this host
    algorithm  of the checksum: sha256 or sha512
    digest     the checksum, in hex
    url_name   the environment variable that gave the address
    sum_name   the environment variable that gave the checksum
    """

    what: str
    url: str
    algorithm: str
    digest: str
    url_name: str
    sum_name: str

    @property
    def path(self) -> Path | None:
        """The file itself if it is on this host; None if it must be downloaded."""
        scheme = urlsplit(self.url).scheme
        if scheme in ("http", "https", "ftp"):
            return None
        return Path(unquote(urlsplit(self.url).path) if scheme == "file" else self.url).expanduser().absolute()

    def obtained(
        self,
        kept: Path,
        say: Callable[[str], None],
        check: Callable[[Path], object],
        stopped: Callable[[], bool],
    ) -> Path:
        """The verified file that passes `check`: where its address says if that is a path, else downloaded to `kept`.

        Raises BuildError.
        """
        if self.path is None:
            if not self.is_at(kept):
                self.fetch(kept, say, check, stopped)
            return kept
        self.verify_in_place(self.path)
        check(self.path)
        return self.path

    def is_at(self, path: Path) -> bool:
        """Whether `path` has this file's content."""
        return path.is_file() and self._sum(path) == self.digest

    def verify_in_place(self, path: Path) -> None:
        """Raise BuildError unless the file at `path` can be read and has the right checksum."""
        try:
            found = self._sum(path)
        except OSError as error:
            raise self._unreadable(path, error) from error
        self._verify(found)

    def fetch(
        self,
        kept: Path,
        say: Callable[[str], None],
        check: Callable[[Path], object],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Copy or download to `kept`, through a draft that is removed unless it is verified and passes `check`.

        Raises BuildError, also if `stopped` becomes true during the download.
        """
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        try:
            if self.path is None:
                say(f"{self.what}: downloading it from {self.url}")
                self._verify(self._download(draft, stopped))
            else:
                self._copy(self.path, draft)
            check(draft)
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)

    def _copy(self, path: Path, draft: Path) -> None:
        try:
            path.open("rb").close()
        except OSError as error:
            raise self._unreadable(path, error) from error
        shutil.copyfile(path, draft)
        self._verify(self._sum(draft))

    def _verify(self, found: str) -> None:
        if found != self.digest:
            raise BuildError(
                f"{self.url}: its {self.algorithm} is {found}, but {self.sum_name} says {self.digest}",
                "get file and checksum again from their publisher; if the file is right, correct the checksum",
            )

    def _unreadable(self, path: Path, error: OSError) -> BuildError:
        return BuildError(f"{self.url_name}: {path}: {error.strerror}", "give the path of a file, or an address")

    def _sum(self, path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, self.algorithm).hexdigest()

    def _download(self, draft: Path, stopped: Callable[[], bool]) -> str:
        """Write the file to `draft`; returns its digest."""
        digest, got = hashlib.new(self.algorithm), 0
        try:
            with urllib.request.urlopen(self.url, timeout=TIMEOUT_S) as answer, draft.open("wb") as file:  # noqa: S310
                size = answer.headers.get("Content-Length")
                while part := answer.read(1 << 20):
                    if stopped():
                        raise BuildError(f"{self.what}: stopped during the download")
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


#: Room for a base's raw disk, Packer's copy of it, the compressed copy and the box.
NEEDED_BYTES = 3 << 30


def need_room(
    directory: Path, needed: int = NEEDED_BYTES, what: str = "a build", instead: str = "set FWLAB_CACHE to a directory"
) -> None:
    """Raise BuildError if the file system of `directory` has less than `needed` bytes left.

    instead  what to do if there cannot be more
    """
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise BuildError(
            f"{directory}: {free >> 20} MiB free, {what} needs {needed >> 20} MiB",
            f"make room there, or {instead} with more",
        )
