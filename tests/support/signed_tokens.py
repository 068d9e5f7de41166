"""A stand-in for a signer of tokens: a function that a connection can name, and a module named like Amazon's.

Both fetch their "signed" token from the tests' own issuer. The test broker has its keys.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from zipfile import ZipFile

from testbed.jars import ensure_jars

URL, SECRET = "TOKEN_ISSUER_URL", "TOKEN_ISSUER_SECRET"
"""Environment variables, because AWS's credentials are in the environment too."""

HANDLER = "IssuedTokens"
JAVA_SOURCE = Path(__file__).parents[1] / "java" / f"{HANDLER}.java"
"""The stand-in for Java."""

SIGNER = '''
from tests.support.signed_tokens import oauth_cb


class MSKAuthTokenProvider:
    """As of Amazon: the end of a token's life is in ms."""

    @staticmethod
    def generate_auth_token(region):
        assert region == "eu-west-1"
        token, until = oauth_cb(None)
        return token, int(until * 1000)
'''


def oauth_cb(_: str | None) -> tuple[str, float]:
    """Return a token and the end of its life, in seconds since the epoch."""
    basic = b64encode(os.environ[SECRET].encode()).decode()
    form = urlencode({"grant_type": "client_credentials", "scope": "kafka"}).encode()
    with urlopen(Request(os.environ[URL], form, {"Authorization": f"Basic {basic}"})) as answer:
        found = json.load(answer)
    return found["access_token"], time.time() + found["expires_in"]


def compiled(directory: Path) -> Path:
    """Compile the class for Java into a jar, as a user would: the connector's class loader has to find it."""
    class_path = f"{ensure_jars('connector')}/*:{jars_of_spark()}/*"
    subprocess.run(["javac", "-cp", class_path, "-d", str(directory), str(JAVA_SOURCE)], check=True, timeout=60)
    jar = directory / f"{HANDLER}.jar"
    with ZipFile(jar, "w") as written:
        for file in directory.glob(f"{HANDLER}*.class"):
            written.write(file, file.name)
    return jar


def jars_of_spark() -> Path:
    """The folder of Spark's jars: they bring Jackson and the logging that the connector's client needs."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def write_signer(directory: Path) -> None:
    """Write a module with the name of Amazon's signer."""
    (directory / "aws_msk_iam_sasl_signer.py").write_text(SIGNER)
