"""TLS for the judge's servers: openssl makes an authority and a certificate for 127.0.0.1 when needed."""

import os
import ssl
import subprocess


class Authority:
    """An authority that exists as long as its directory."""

    def __init__(self, folder):
        self.certificate = os.path.join(folder, "ca.pem")
        self._key = os.path.join(folder, "ca.key")
        self._folder = folder
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                      "-subj", "/CN=judge", "-keyout", self._key, "-out", self.certificate)

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def context(self, hosts=()):
        """Returns the context for a server on 127.0.0.1, which may also have other names."""
        request, key, chain, names = (
            os.path.join(self._folder, name) for name in ("server.csr", "server.key", "server.pem", "server.ext"))
        with open(names, "w", encoding="utf-8") as file:
            file.write(",".join(["subjectAltName=IP:127.0.0.1", "DNS:localhost", *(f"DNS:{host}" for host in hosts)]))
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                      "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-days", "2",
                      "-CAcreateserial", "-extfile", names, "-out", chain)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        return context

    def client(self, name, subject=None, days=2):
        """Makes a certificate for a client, and returns the paths of the certificate and of its private key. A negative
        number of days makes one that has expired."""
        request, key, chain = (os.path.join(self._folder, f"{name}.{end}") for end in ("csr", "key", "pem"))
        self._openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                      "-subj", f"/CN={subject or name}", "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-days", str(days),
                      "-CAcreateserial", "-out", chain)
        return chain, key
