"""HTTPS."""

from __future__ import annotations

import ssl
from typing import NamedTuple

__all__ = ["Tls"]


class Tls(NamedTuple):
    """Files of a certificate and its key, as PEM."""

    cert: str
    key: str

    def context(self) -> ssl.SSLContext:
        """What a socket needs; `ValueError` if they are not what they should be."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self.cert, self.key)
        except ssl.SSLError as error:
            why = "no PEM" if error.reason is None else error.reason.lower().replace("_", " ")
            raise ValueError(f"{self.cert}: not a certificate with its key: {why}") from None
        return made
