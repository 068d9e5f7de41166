"""Stands in for a signer of tokens: a function that a connection can name, and a module of the name of Amazon's.

Both fetch what they "sign" from the tests' own issuer, whose keys the test broker has.
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
"""In the environment, as AWS's credentials are."""

HANDLER = "IssuedTokens"
JAVA_SOURCE = Path(__file__).parents[1] / "java" / f"{HANDLER}.java"
"""The same for Java."""

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
    """Compile the class for Java, as a user's jar: the loader of the connector has to find it."""
    class_path = f"{ensure_jars('connector')}/*:{jars_of_spark()}/*"
    subprocess.run(["javac", "-cp", class_path, "-d", str(directory), str(JAVA_SOURCE)], check=True, timeout=60)
    jar = directory / f"{HANDLER}.jar"
    with ZipFile(jar, "w") as written:
        for file in directory.glob(f"{HANDLER}*.class"):
            written.write(file, file.name)
    return jar


def jars_of_spark() -> Path:
    """Spark brings Jackson and the log that the connector's client needs."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def write_signer(directory: Path) -> None:
    """Write a module of the name of Amazon's signer."""
    (directory / "aws_msk_iam_sasl_signer.py").write_text(SIGNER)
