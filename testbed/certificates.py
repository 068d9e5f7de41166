"""A certificate authority for brokers and clients on this machine. Each directory has an authority of its own."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = timedelta(days=30)


class Certificates:
    """Issues certificates, each once, as PEM files that librdkafka and Java (KIP-651) both read.

    :param directory: directory of the files, made if missing; only its owner may read it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._name = _named("Kafka Rescale test authority")
        self._key = _key_in(directory / "authority.key")
        if not self.authority.exists():
            authority = _builder(self._name, self._name, self._key)
            authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            self.authority.write_bytes(_pem(authority.sign(self._key, hashes.SHA256())))

    @property
    def authority(self) -> Path:
        """The certificate of the authority, for ``ssl.ca.location``."""
        return self.directory / "authority.pem"

    def issue(self, common_name: str) -> Path:
        """Return a file with a key in PKCS#8 and its certificate, valid for this machine's own addresses.

        :param common_name: a client with this name is the principal ``User:CN=<common name>``.
        """
        file = self.directory / f"{common_name}.pem"
        if not file.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            asked = _builder(_named(common_name), self._name, key)
            asked = asked.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            certificate = asked.sign(self._key, hashes.SHA256())
            file.touch(mode=0o600)
            file.write_bytes(_private(key) + _pem(certificate))
        return file


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    # Valid since an hour ago, because clocks differ.
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + VALID)


def _key_in(file: Path) -> ec.EllipticCurvePrivateKey:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_private(ec.generate_private_key(ec.SECP256R1())))
    key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
