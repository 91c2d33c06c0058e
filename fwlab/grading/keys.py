# SPDX-License-Identifier: GPL-2.0-or-later
"""The key of a cluster over a network: a private key and its own certificate, in one file that all parts have."""

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.model.errors import BadInput

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fwlab")])


def write_key(path: Path, days: int) -> None:
    """Make a key that is valid for `days` days. Raises BadInput if the file exists or cannot be written."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, *form) + certificate.public_bytes(serialization.Encoding.PEM)
    if path.exists():
        raise BadInput(f"{path} exists already", "name a new file")
    with write_errors_as(path), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)


def invalid_today(path: Path) -> str | None:
    """Why this key is not valid today; None if it is. Raises BadInput for a file that is no key."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", f"fwlab key {path}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not a key of a cluster", "make one with `fwlab key FILE`") from error
    now = datetime.datetime.now(datetime.UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return f"{path}: the key is not valid before {begins:%F %H:%M} UTC, and this host's clock says {now:%F %H:%M}"
    return f"{path}: the key expired on {ends:%Y-%m-%d}" if now > ends else None
