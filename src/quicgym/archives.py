"""Files in zip and tar archives of anybody's making, read without being unpacked to disk."""

from __future__ import annotations

import difflib
import errno
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import IO, BinaryIO, Self

MOST_ARCHIVE_BYTES = 2**30
MOST_UNPACKED_BYTES = 2**32
"""Most bytes that the members of a tar archive have together, up to the one that is read."""
_MOST_HEADER_BYTES = 2**20
_LONG_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    ValueError,
    OSError,
)


class _BoundedInfo(tarfile.TarInfo):
    """A member whose extended headers, which tarfile reads into memory, are short."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.type in _LONG_HEADERS and info.size > _MOST_HEADER_BYTES:
            raise tarfile.ReadError("a header is too long")
        return info


def read_member(archive: BinaryIO, name: str, most_bytes: int) -> bytes:
    """Reads a file of a zip or tar archive, the latter compressed by gzip, bzip2, xz or not at all.

    `strerror` of OSError says why not: the archive is none or is damaged, has no such file, or the
    file is larger than `most_bytes`.

    Args:
        archive: The archive, open for reading.
        name: Path of the file inside of it.
        most_bytes: Largest size of the file.
    """
    try:
        is_zip = zipfile.is_zipfile(archive)
        archive.seek(0)
        read = _from_zip if is_zip else _from_tar
        data = read(archive, name, most_bytes + 1)
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.strerror is not None:
            raise
        text = "Is in a damaged archive, or in a file that is neither zip nor tar"
        raise OSError(errno.EINVAL, text, name) from None
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"Has more than the {most_bytes} bytes that are read", name)
    return data


def _from_zip(archive: BinaryIO, name: str, most_bytes: int) -> bytes:
    with zipfile.ZipFile(archive) as opened:
        members = {_path(info.filename): info for info in opened.infolist() if not info.is_dir()}
        if name not in members:
            raise _missing(name, members)
        if members[name].flag_bits & 1:
            raise OSError(errno.EACCES, "Is encrypted", name)
        with opened.open(members[name]) as file:
            return _read(file, most_bytes)


def _from_tar(archive: BinaryIO, name: str, most_bytes: int) -> bytes:
    unpacked = 0
    names: list[str] = []
    with tarfile.open(fileobj=archive, mode="r:*", tarinfo=_BoundedInfo) as opened:
        for member in opened:
            unpacked += member.size
            if unpacked > MOST_UNPACKED_BYTES:
                text = f"Lies behind more than {MOST_UNPACKED_BYTES} bytes of other files"
                raise OSError(errno.EFBIG, text, name)
            if not member.isfile():
                continue
            names.append(_path(member.name))
            if names[-1] == name and (file := opened.extractfile(member)) is not None:
                return _read(file, most_bytes)
    raise _missing(name, names)


def _path(member: str) -> str:
    return str(PurePosixPath(member))


def _read(file: IO[bytes], most_bytes: int) -> bytes:
    data: bytes = file.read(most_bytes)
    return data


def _missing(name: str, names: Iterable[str]) -> OSError:
    similar = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    hint = f" (did you mean {', '.join(similar)}?)" if similar else ""
    return OSError(errno.ENOENT, f"{os.strerror(errno.ENOENT)} in the archive{hint}", name)
