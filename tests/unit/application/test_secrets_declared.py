"""Secrets in an application file: they are refused where they would be shown, and no message quotes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.core.application.fields import place
from kafka_rescale.core.application.mistakes import WrongValue
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_application, load_pipeline_application

from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

SECRET = "7312904"
NAMED, OPTION = "which is named like a secret", "an option with a secret"

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": (SECRET, NAMED),
    "spark.hadoop.fs.s3a.access.key": (SECRET, NAMED),
    "spark.hadoop.fs.s3a.session.token": (SECRET, NAMED),
    "spark.hadoop.fs.azure.account.key.mine.dfs.core.windows.net": (SECRET, NAMED),
    "spark.hadoop.fs.gs.auth.service.account.private.key": (SECRET, NAMED),
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY": (SECRET, NAMED),
    "spark.authenticate.secret": (SECRET, NAMED),
    "spark.ssl.keyPassword": (SECRET, NAMED),
    "spark.kubernetes.authenticate.submission.oauthToken": (SECRET, NAMED),
    "spark.kafka.clusters.a.ssl.key.password": (SECRET, NAMED),
    "spark.jars.repositories": (
        f"https://repo/maven,https://user:{SECRET}@repo/maven",
        "an address with a password",
    ),
    "spark.jars.ivySettings": (f"https://{SECRET}@repo/ivy.xml", "an address with a password"),
    "spark.jars": (f"https://repo/a.jar?sv=1&sig={SECRET}", "an address with a secret in its query"),
    "spark.driver.extraJavaOptions": (f"-Da=b -Djavax.net.ssl.keyStorePassword={SECRET}", OPTION),
    "spark.executor.extraJavaOptions": (f"-Daws.secretKey={SECRET}", OPTION),
    "spark.executorEnv.KAFKA_RESCALE_KAFKA_CONFIG": (f'{{"sasl.password": "{SECRET}"}}', OPTION),
}

HARMLESS = {
    "spark.executor.cores": "2",
    "spark.authenticate": "true",
    "spark.authenticate.secret.file": "/run/spark/secret",
    "spark.kerberos.renewal.credentials": "ccache",
    "spark.security.credentials.hive.enabled": "false",
    "spark.security.credentials.renewalRatio": "0.75",
    "spark.security.credentials.retryWait": "1h",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key",
    "spark.redaction.string.regex": "password=\\S+",
    "spark.sql.redaction.options.regex": "(?i)url|password=x",
    "spark.yarn.am.tokenConfRegex": "^dfs.nameservices$",
    "spark.kafka.clusters.a.sasl.token.mechanism": "SCRAM-SHA-512",
    "spark.kubernetes.driver.secrets.mine": "/etc/secrets",
    "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY": "mine:key",
    "spark.kubernetes.container.image.pullSecrets": "mine",
    "spark.kubernetes.kerberos.tokenSecret.name": "mine",
    "spark.kubernetes.kerberos.tokenSecret.itemKey": "key",
    "spark.kubernetes.authenticate.driver.oauthTokenFile": "/run/token",
    "spark.ssl.privateKey": "/run/spark/key.pem",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.InstanceProfileCredentialsProvider",
    "spark.hadoop.hadoop.security.credential.provider.path": "jceks://hdfs@namenode:9001/user/me/s3.jceks",
    "spark.hadoop.fs.azure.sas.token.provider.type": "com.example.Provider",
    "spark.hadoop.fs.gs.auth.access.token.provider.impl": "com.example.Provider",
    "spark.hadoop.fs.gs.token.server.url": "https://issuer/token",
    "spark.hadoop.fs.s3a.delegation.token.binding": "com.example.Binding",
    "spark.hadoop.yarn.resourcemanager.delegation.token.renew-interval": "86400000",
    "spark.executorEnv.TOKENIZERS_PARALLELISM": "3",
    "spark.hadoop.fs.azure.account.keyprovider.mine.dfs.core.windows.net": "org.example.ShellKeyProvider",
    "spark.hadoop.fs.azure.account.oauth.provider.type": "org.example.ClientCredsTokenProvider",
    "spark.executorEnv.AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
    "spark.executor.extraJavaOptions": (
        "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://issuer:8443/token "
        "-Djavax.net.ssl.trustStore=/run/ca.jks"
    ),
    "spark.jars.repositories": "https://repo:8443/maven,https://another/maven",
    "spark.ui.proxyBase": "/proxy",
    "spark.sql.ansi.enforceReservedKeywords": "true",
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("of", ["application", "pipeline", "client"])
def test_settings_of_spark_have_none(tmp_path: Path, name: str, of: str) -> None:
    value, found = SECRETS[name]
    conf = {"spark.executor.cores": "2", name: int(value) if value == SECRET else value}
    where, load = "spark_conf", load_application if of == "application" else load_pipeline_application
    if of == "application":
        file = write_application(tmp_path, spark_conf=conf)
    elif of == "pipeline":
        file = write_pipeline(tmp_path, spark_conf=conf)
    else:
        clients = [{"client.id": "a", "state.dir": "/a", "spark_conf": conf}]
        file = write_pipeline(tmp_path, **{"clients": clients, "state.dir": None})
        where = "clients[0].spark_conf"
    with pytest.raises(InvalidInput, match="Put them where Spark's drivers and executors run") as refused:
        load(file)
    assert f"{where}: found `{name}`, {found}; expected no credentials" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_settings_that_only_resemble_them_are_let_pass(tmp_path: Path) -> None:
    assert load_application(write_application(tmp_path, spark_conf=HARMLESS)).spark_conf == HARMLESS


@pytest.mark.parametrize(
    "value",
    [
        "s3://AK:7312904/K@b/x",
        "s3://AK:7312904@b/x",
        "s3://b/x?secret_key=7312904",
        "s3://b/x?endpoint_override=h&access_key=7312904",
        "abfs://c@acc/x?sig=7312904",
        "abfs://c:S7312904/K@acc/x",
        "AK:7312904@b/x?key=7312904",
        "s3://AK:7312904[@b/x",
    ],
)
def test_places_of_files_have_none(value: str) -> None:
    with pytest.raises(WrongValue, match="no credentials in a URI") as refused:
        place(value)
    assert "7312904" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        "abfs://c@acc/x",
        "s3://b/x?endpoint_override=h:9000&scheme=http",
        "hdfs://n:8020/x@y",
        "/x?y=z",
        "s3://b/x?partition_key=7",
    ],
)
def test_other_places_are_let_pass(value: str) -> None:
    assert place(value) == value
