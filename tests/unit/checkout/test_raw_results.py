# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw results: compressed where the name says so, read back as they were, and named if they cannot be read."""

import gzip
from pathlib import Path

import pytest

from fwlab.checkout import raw_results
from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import name_of, raw_result, read_document, write_document
from fwlab.measure.saved_runs import load_run
from fwlab.model.errors import BadInput
from tools.results_index import index

TEXT = '{"words": "€"}\n'


def test_a_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = write_document(raw_result(Project(tmp_path), "lab98-trouble/published"), TEXT)
    plain = write_document(tmp_path / "run.json", TEXT)
    assert gzip.decompress(kept.read_bytes()) == plain.read_bytes() == TEXT.encode()
    assert read_document(kept) == read_document(plain) == TEXT.encode()
    assert raw_results.raw_results(Project(tmp_path), "*/*") == [kept]
    assert (kept.relative_to(tmp_path).as_posix(), name_of(kept)) == (
        "results/lab98-trouble/published.json.gz",
        "published",
    )


def test_the_same_document_makes_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_document(tmp_path / "one.json.gz", TEXT).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert write_document(tmp_path / "two.json.gz", TEXT).read_bytes() == first


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (TEXT.encode(), "not a complete gzip file"),
        (gzip.compress(TEXT.encode())[:-9], "not a complete gzip file"),
        (gzip.compress(TEXT.encode())[:12] + b"\xff" * 30, "not a complete gzip file"),
        (gzip.compress(bytes(1 << 20)), "more than 0 MiB"),
        (gzip.compress(TEXT.encode()), "not a run of fwlab"),
    ],
    ids=["plain", "cut", "damaged", "larger than it looks", "of another kind"],
)
def test_a_file_that_is_no_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, says: str
) -> None:
    monkeypatch.setattr(raw_results, "MAX_FILE", 1000)
    path = tmp_path / "published.json.gz"
    path.write_bytes(data)
    with pytest.raises(BadInput, match=rf"published\.json\.gz: {says}"):
        load_run(path, "lab98-trouble")


def test_a_document_that_is_not_compressed_gets_into_no_index(tmp_path: Path) -> None:
    write_document(tmp_path / "results" / "model" / "2026-01-01-pages.json", TEXT)
    with pytest.raises(BadInput, match=r"not compressed: results/model/2026-01-01-pages\.json") as refused:
        index(Project(tmp_path))
    assert refused.value.hint == "gzip -9n results/model/2026-01-01-pages.json"
