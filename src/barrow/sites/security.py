"""Certificates that are made for one cluster and end with it.

Whoever holds them may connect, and nobody else: a scheduler runs any code that it
is sent. They are files that only their owner can read, in a folder that only their
owner can enter.
"""

import datetime
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CERTIFICATE_FILE = "tls-certificate.pem"
KEY_FILE = "tls-key.pem"
# Clocks of two machines may differ.
EARLIER = datetime.timedelta(days=1)
VALID = datetime.timedelta(days=365)


@dataclass(frozen=True, repr=False)
class Credentials:
    """A certificate that signs itself, and its key: the same for all who take part."""

    certificate: str
    key: str


def make_credentials() -> Credentials:
    """Return a fresh certificate and its key.

    Examples
    --------
    >>> make_credentials().certificate.splitlines()[0]
    '-----BEGIN CERTIFICATE-----'
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    # An elliptic curve: a key takes less than a millisecond, with RSA a tenth of a second.
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "barrow")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + VALID)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    return Credentials(public.decode(), private.decode())


def write_credentials(credentials: Credentials, folder: Path) -> None:
    """Keep credentials where workers find them; the folder must be the owner's alone."""
    for name, text in (
        (CERTIFICATE_FILE, credentials.certificate),
        (KEY_FILE, credentials.key),
    ):
        write_private(folder / name, text)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    # The mode is set when the file is made: there is no moment at which others can read it.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w") as stream:
        stream.write(text)


def remove_credentials(folder: Path) -> None:
    """Remove what :func:`write_credentials` wrote."""
    for name in (CERTIFICATE_FILE, KEY_FILE):
        (folder / name).unlink(missing_ok=True)


def read_security(folder: str | Path) -> Any:
    """Return Dask's settings for a worker whose credentials are in a folder."""
    return _make_security(str(Path(folder, CERTIFICATE_FILE)), str(Path(folder, KEY_FILE)))


def make_security(credentials: Credentials) -> Any:
    """Return Dask's settings for credentials in memory."""
    return _make_security(credentials.certificate, credentials.key)


def _make_security(certificate: str, key: str) -> Any:
    from distributed import Security

    roles = {
        f"tls_{role}_{what}": value
        for role in ("client", "scheduler", "worker")
        for what, value in (("cert", certificate), ("key", key))
    }
    return Security(require_encryption=True, tls_ca_file=certificate, **roles)
