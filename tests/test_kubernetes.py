"""The Kubernetes files, `spark-defaults.conf` and the image's entry point fit each other."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from tests.support.manifests import DEPLOY, Manifests, texts

pytestmark = pytest.mark.usefixtures("processes")

TEXTS = texts()
POD, TEMPLATE = "kubernetes/control-plane.yaml", "kubernetes/executor-template.yaml"
CONF, ROLE = "spark-defaults.conf", "kubernetes/service-account.yaml"
# What is changed where, and a part of what is then said.
PLANTED = {
    "a_file_is_forgotten": (
        "kustomization.yaml",
        "  - kubernetes/service.yaml\n",
        "",
        "service.yaml is not applied",
    ),
    "a_secret_is_applied": (
        "kustomization.yaml",
        "resources:",
        "resources:\n  - kubernetes/secrets.example.yaml",
        "is applied",
    ),
    "a_file_is_gone": (
        "kustomization.yaml",
        "storage.yaml",
        "volumes.yaml",
        "volumes.yaml does not exist",
    ),
    "a_namespace": (POD, "  name: sluice\n", "  name: sluice\n  namespace: x\n", "a namespace"),
    "another_image": (POD, "sluice:0.1.0", "sluice:0.0.9", "image of control-plane.yaml"),
    "executors_of_another_image": (CONF, "sluice:0.1.0", "sluice:latest", "spark-defaults.conf"),
    "compose_has_the_latest": ("compose.yaml", "apache/kafka:4.1.1", "apache/kafka:latest", "no v"),
    "another_port": (POD, "containerPort: 8326", "containerPort: 8080", "not SLUICE_PORT"),
    "probe_of_no_route": (POD, "/readyz", "/ready", "/ready, which is no route"),
    "probe_without_tls": (POD, "scheme: HTTPS", "scheme: HTTP", "not served"),
    "service_to_no_port": (
        "kubernetes/service.yaml",
        "targetPort: https",
        "targetPort: w",
        "port w",
    ),
    "policy_of_no_port": ("kubernetes/network-policy.yaml", "port: https", "port: w", "port w"),
    "misspelt_setting": (
        "kubernetes/settings.yaml",
        "SLUICE_LOG_LEVEL",
        "SLUICE_LOGLEVEL",
        "no setting",
    ),
    "bad_value": (
        "kubernetes/settings.yaml",
        "k8s://https",
        "k8://https",
        "SLUICE_SPARK_MASTER is",
    ),
    "variable_too_late": (POD, "$(POD_IP)", "$(LATER)", "refers to LATER"),
    "volume_not_mounted": (POD, "{name: scratch, emptyDir", "{name: old, emptyDir", "volume old"),
    "claim_of_another_name": (TEMPLATE, "claimName: sluice-data", "claimName: data", "Claim data"),
    "secret_of_another_name": (POD, "secretName: sluice-tls", "secretName: tls", "secret tls"),
    "data_on_no_volume": (
        POD,
        "value: /var/lib/sluice}",
        "value: /data}",
        "SLUICE_DATA_DIR is on no volume",
    ),
    "data_elsewhere_on_executors": (
        TEMPLATE,
        "mountPath: /var/lib/sluice}",
        "mountPath: /data}",
        "SLUICE_DATA_DIR is another place",
    ),
    "scratch_on_shared_storage": (
        POD,
        "value: /var/lib/sluice-scratch",
        "value: /var/lib/sluice",
        "SPARK_LOCAL_DIRS is no scratch",
    ),
    "template_elsewhere": (CONF, "/etc/sluice/spark/ex", "/etc/spark/ex", "podTemplateFile"),
    "key_of_another_name": (POD, "tls/tls.key", "tls/key.pem", "TLS_KEY is none of"),
    "image_of_root": ("Dockerfile", "USER 10001", "USER root", "as its user"),
    "pod_of_root": (POD, "runAsNonRoot: true", "runAsNonRoot: false", "plane may be root"),
    "another_user": (TEMPLATE, "runAsUser: 10001", "runAsUser: 1", "executor is not the image's"),
    "writable_root": (POD, "readOnlyRootFilesystem: true", "privileged: true", "more than it"),
    "executor_with_a_token": (
        TEMPLATE,
        "automountServiceAccountToken: false",
        "hostIPC: false",
        "ken",
    ),
    "selector_of_another": (
        "kubernetes/service.yaml",
        "component: control",
        "component: c",
        "Service d",
    ),
    "account_that_is_not": (POD, "serviceAccountName: sluice", "serviceAccountName: x", "account"),
    "role_for_another": (ROLE, "    name: sluice\n", "    name: sluice-executor\n", "not bound"),
    "role_without_pods": (ROLE, "[pods, configmaps]", "[configmaps]", "make and remove pods"),
    "role_with_secrets": (ROLE, "[pods, conf", "[secrets, pods, conf", "driver may have secrets"),
    "two_control_planes": (POD, "type: Recreate", "type: RollingUpdate", "two control planes"),
    "heap_too_large": ("kubernetes/settings.yaml", "MEMORY: 2g", "MEMORY: 8g", "does not fit"),
    "scratch_too_large": (POD, "ephemeral-storage: 60Gi", "ephemeral-storage: 30Gi", "scratch"),
    "misspelt_spark_setting": (CONF, "memoryOverhead  ", "overheadMemory  ", "no setting of Spark"),
    "setting_without_effect": (CONF, "spark.executor.cores ", "spark.driver.memory ", "no effect"),
    "another_container": (TEMPLATE, "- name: executor", "- name: worker", "Spark looks for"),
    "driver_at_a_fixed_address": (
        POD,
        '"spark.driver.host": "$(POD_IP)"',
        '"spark.driver.host": "10.0.0.1"',
        "spark.driver.host does not come",
    ),
}


def test_the_files_fit_each_other_the_image_the_settings_and_spark() -> None:
    assert Manifests(TEXTS).faults() == []


@pytest.mark.parametrize(("name", "old", "new", "told"), PLANTED.values(), ids=PLANTED)
def test_a_planted_mistake_is_found(name: str, old: str, new: str, told: str) -> None:
    assert old in TEXTS[name]
    found = Manifests({**TEXTS, name: TEXTS[name].replace(old, new)}).faults()
    assert any(told in fault for fault in found), found


# The image's entry point
# --------------------------------------------------------------------------------------------------


def run_entrypoint(tmp_path: Path, *words: str, **given: str) -> "subprocess.CompletedProcess[str]":
    """What would be executed, a word a line: programs named `java` and `sluice` say it."""
    for name in ("java", "sluice"):
        program = tmp_path / name
        program.write_text('#!/bin/sh\necho "${0##*/}"\nprintf "%s\\n" "$@"\npwd\n')
        program.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [str(DEPLOY / "entrypoint"), *words],
        env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path), **given},
        capture_output=True,
        text=True,
    )


EXECUTOR = {
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.1.2.3:4040",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-application-1",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.4",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "sluice-exec-7",
}


def test_the_image_runs_sluice(tmp_path: Path) -> None:
    ended = run_entrypoint(tmp_path, "serve", "--port", "1")
    assert ended.stdout.splitlines()[:4] == ["sluice", "serve", "--port", "1"]


def test_the_image_runs_the_executor_that_spark_asks_for(tmp_path: Path) -> None:
    options = {f"SPARK_JAVA_OPT_{n}": f"-Dn={n} of them" for n in (0, 10, 2)}
    ended = run_entrypoint(tmp_path, "executor", **EXECUTOR, **options)
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    program, *words, place = ended.stdout.splitlines()
    assert (program, place) == ("java", str(tmp_path)), ended.stderr
    assert words[:7] == [*(f"-Dn={n} of them" for n in (0, 2, 10)), "-Xms2g", "-Xmx2g", "-cp", jars]
    values = dict(zip(words[8::2], words[9::2], strict=True))
    assert set(values.values()) == set(EXECUTOR.values()) - {"2g"}
    (archive,) = Path(jars).parent.glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(archive) as content:
        assert f"{words[7].replace('.', '/')}.class" in content.namelist()
        arguments = content.read(f"{words[7].replace('.', '/')}$.class")
    assert all(option.encode() in arguments for option in values)


def test_an_executor_that_nobody_asked_for_says_what_is_missing(tmp_path: Path) -> None:
    given = {name: value for name, value in EXECUTOR.items() if name != "SPARK_DRIVER_URL"}
    ended = run_entrypoint(tmp_path, "executor", **given)
    assert ended.returncode != 0
    assert "SPARK_DRIVER_URL: is set by Spark" in ended.stderr
