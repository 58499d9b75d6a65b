"""Certificates for a few minutes, made by the command openssl."""

import subprocess


def run(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Authority:
    """One that vouches: `NAME.pem` in a folder, and what it has signed beside it."""

    def __init__(self, folder, name):
        self.folder, self.path, self.key = folder, f"{folder}/{name}.pem", f"{folder}/{name}.key"
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        run("req", "-x509", *kind, "-keyout", self.key, "-out", self.path, "-days", "2", "-subj", f"/CN={name}")

    def sign(self, name, days=2):
        """Paths of a certificate and of its key; one of fewer than no days has expired."""
        certificate, key, asked = (f"{self.folder}/{name}.{ending}" for ending in ("pem", "key", "csr"))
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        run("req", "-new", *kind, "-keyout", key, "-out", asked, "-subj", f"/CN={name}")
        extensions = f"{self.folder}/{name}.ext"
        with open(extensions, "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        signed = ["-CA", self.path, "-CAkey", self.key, "-CAcreateserial", "-extfile", extensions]
        run("x509", "-req", "-in", asked, "-out", certificate, *signed, "-days", str(days))
        return certificate, key
