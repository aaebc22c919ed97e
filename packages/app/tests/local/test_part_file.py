import errno
from pathlib import Path

import pytest

from towline.local.errors import DiskFull, ModelFolderUnusable, ModelHashWrong
from towline.local.part_file import PartFile, disk_errors


def opened(path: Path, source: str = "model hub") -> PartFile:
    part = PartFile(path, source)
    part.open()
    while part.rehash_some():
        pass
    return part


def sha_of(content: bytes, folder: Path) -> str:
    """The hash as an error names it, so that the test has no second way to compute it."""
    part = opened(folder / "probe")
    part.append(content)
    with pytest.raises(ModelHashWrong) as caught:
        part.publish(folder / "never", "0")
    return caught.value.message.split("'")[1]


def test_bytes_committed_by_an_earlier_run_are_kept_and_count_for_the_hash(tmp_path: Path) -> None:
    first = opened(tmp_path / "m.part")
    first.append(b"GGUF one ")
    first.commit(1)
    first.close()

    second = opened(tmp_path / "m.part")
    assert (second.size, second.pieces) == (9, 1)
    second.append(b"two")
    second.publish(tmp_path / "m", sha_of(b"GGUF one two", tmp_path))

    assert (tmp_path / "m").read_bytes() == b"GGUF one two"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_bytes_that_the_journal_does_not_know_are_dropped(tmp_path: Path) -> None:
    first = opened(tmp_path / "m.part")
    first.append(b"known")
    first.commit(1)
    first.append(b"half a part")
    first.close()

    second = opened(tmp_path / "m.part")
    assert (second.size, second.pieces) == (5, 1)
    second.close()
    assert (tmp_path / "m.part").read_bytes() == b"known"


@pytest.mark.parametrize(
    "journal",
    [
        "",
        "[]",
        "{",
        '{"source": "package index", "bytes": 5, "pieces": 1}',
        '{"source": "model hub", "bytes": 6, "pieces": 1}',
        '{"source": "model hub", "bytes": -1, "pieces": 1}',
    ],
)
def test_a_journal_that_does_not_fit_the_file_starts_it_anew(tmp_path: Path, journal: str) -> None:
    (tmp_path / "m.part").write_bytes(b"12345")
    (tmp_path / "m.part.json").write_text(journal, encoding="utf-8")
    part = opened(tmp_path / "m.part")
    assert (part.size, part.pieces) == (0, 0)
    part.close()


def test_a_wrong_hash_names_both_hashes_and_deletes_the_file(tmp_path: Path) -> None:
    part = opened(tmp_path / "m.part")
    part.append(b"poison")
    part.commit()
    with pytest.raises(ModelHashWrong, match=r"SHA-256 '[0-9a-f]{64}', not 'abc'.*--model FILE"):
        part.publish(tmp_path / "m", "abc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_with_the_folder_and_the_way_out(tmp_path: Path, number: int) -> None:
    with pytest.raises(DiskFull, match=r"is full.*TOWLINE_MODEL_DIR"), disk_errors(tmp_path):
        raise OSError(number, "no space")


def test_a_folder_that_cannot_be_used_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelFolderUnusable, match=r"Not a directory.*TOWLINE_MODEL_DIR"):
        PartFile(tmp_path / "file" / "m.part", "model hub").open()
