"""The Kubernetes files, `spark-defaults.conf` and the image's entry point fit each other."""

import os
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any

import kubernetes_validate
import pyspark
import pytest
import yaml

from joins.plan.plan import DeltaSink
from service.config import Settings
from service.security.allowed import check_store
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
    "variables_of_the_service": (
        POD,
        "enableServiceLinks: false",
        "enableServiceLinks: true",
        "variables of service sluice",
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


# Kubernetes' own schemas, and the part with two control planes
# --------------------------------------------------------------------------------------------------

SCHEMAS = "1.33"
FAILOVER = yaml.safe_load((DEPLOY / "failover/kustomization.yaml").read_text(encoding="utf-8"))
STORE = yaml.safe_load((DEPLOY / "store/kustomization.yaml").read_text(encoding="utf-8"))


def merged(base: Any, patch: Any) -> Any:
    """A strategic merge: of lists whose members have names, those of one name are one."""
    if isinstance(base, dict) and isinstance(patch, dict):
        both = {key: merged(base[key], patch[key]) for key in base.keys() & patch.keys()}
        every = {**base, **patch, **both}
        return {key: value for key, value in every.items() if value is not None}
    if isinstance(base, list) and all("name" in each for each in (*base, *patch)):
        known = {each["name"]: each for each in base}
        changed = {each["name"]: merged(known.get(each["name"]), each) for each in patch}
        return list({**known, **changed}.values())
    return patch


def two_control_planes() -> dict[str, Any]:
    (patch,) = FAILOVER["patches"]
    deployment: dict[str, Any] = merged(Manifests(TEXTS).deployment, yaml.safe_load(patch["patch"]))
    return deployment


def with_a_store(deployment: dict[str, Any]) -> dict[str, Any]:
    _, patch = STORE["patches"]
    changed: dict[str, Any] = merged(deployment, yaml.safe_load(patch["patch"]))
    return changed


def test_every_object_is_what_the_schemas_say() -> None:
    made = [two_control_planes(), with_a_store(two_control_planes())]
    for document in [*Manifests(TEXTS).documents, *made]:
        kubernetes_validate.validate(document, SCHEMAS, strict=True)


def test_a_misspelt_field_is_no_object() -> None:
    spec = {**two_control_planes()["spec"], "replica": 2}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate({**two_control_planes(), "spec": spec}, SCHEMAS, strict=True)


def test_two_control_planes_share_all_but_their_node() -> None:
    spec, base = two_control_planes()["spec"], Manifests(TEXTS).deployment["spec"]
    pod = spec["template"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 2}
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]
    (container,), (before,) = pod["containers"], base["template"]["spec"]["containers"]
    (added,) = [entry for entry in container["env"] if entry not in before["env"]]
    assert added["name"] == "SLUICE_DATABASE_URL"
    assert {**container, "env": 0} == {**before, "env": 0}
    assert pod["volumes"] == base["template"]["spec"]["volumes"]


def added_by_a_store() -> dict[str, Any]:
    before, after = (
        each["spec"]["template"]["spec"]["containers"][0]
        for each in (two_control_planes(), with_a_store(two_control_planes()))
    )
    assert {**after, "env": 0} == {**before, "env": 0}
    return {entry["name"]: entry for entry in after["env"] if entry not in before["env"]}


def test_a_store_is_a_setting_of_the_control_plane_and_its_credentials() -> None:
    added = added_by_a_store()
    ours = {name for name in added if name.startswith("SLUICE")}
    given = {n.removeprefix("SLUICE_").lower(): added[n]["value"] for n in ours}
    settings = Settings.load(**given)
    check_store(DeltaSink(path=f"{settings.warehouse}/clicks"), settings)
    assert added.keys() - ours == {"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_executors_of_a_store_have_its_credentials_and_no_shared_volume() -> None:
    added = added_by_a_store()
    template = yaml.safe_load((DEPLOY / "store/executor-template.yaml").read_text())
    kubernetes_validate.validate(template, SCHEMAS, strict=True)
    (container,) = template["spec"]["containers"]
    assert container.pop("env") == [e for name, e in added.items() if name.startswith("AWS")]
    (base,) = (d for d in Manifests(TEXTS).documents if d["kind"] == "Pod")
    for holder, names in ((container, "volumeMounts"), (template["spec"], "volumes")):
        assert "data" not in {each["name"] for each in holder[names]}
    for spec in (template["spec"], base["spec"]):
        for holder, names in ((spec["containers"][0], "volumeMounts"), (spec, "volumes")):
            holder[names] = [each for each in holder[names] if each["name"] != "data"]
    assert template == base


@pytest.mark.parametrize("parts", ["failover", "failover, store"])
def test_kustomize_makes_the_same_of_it(tmp_path: Path, parts: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl on PATH (1.21 or later)")
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy)
    text, line = (copy / "kustomization.yaml").read_text(), "\n# components: [failover]\n"
    assert text.count(line) == 1
    (copy / "kustomization.yaml").write_text(text.replace(line, f"\ncomponents: [{parts}]\n"))
    built = subprocess.run(["kubectl", "kustomize", str(copy)], capture_output=True, check=True)
    documents = list(yaml.safe_load_all(built.stdout))
    assert ("PersistentVolumeClaim" in {d["kind"] for d in documents}) == ("store" not in parts)
    (spark,) = (d for d in documents if d["metadata"]["name"].startswith("sluice-spark-"))
    assert ("sluice-data" in spark["data"]["executor-template.yaml"]) == ("store" not in parts)
    (deployment,) = (d for d in documents if d["kind"] == "Deployment")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (volume,) = [v for v in volumes if "configMap" in v]
    volume["configMap"]["name"] = "sluice-spark"  # it has a hash of its content in its name
    expected = two_control_planes()
    expected = with_a_store(expected) if "store" in parts else expected
    assert sorted_by_name(deployment) == sorted_by_name(expected)


def sorted_by_name(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted_by_name(each) for key, each in value.items()}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return sorted((sorted_by_name(each) for each in value), key=partial(dumps, sort_keys=True))
    return value


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
