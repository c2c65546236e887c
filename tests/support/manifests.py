"""Checks of `deploy/`'s Kubernetes files against each other, the image, the settings and Spark.

`Manifests` is made from texts, so that a test can plant a mistake and see that it is found.
"""

import json
import re
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pyspark
import yaml

from joins.job import session
from service.config import PREFIX, Settings
from service.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
Values = dict[str, Any]
_REFERENCE = re.compile(r"\$\((\w+)\)")
_HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_JARS = {
    "spark-core_": (
        "org/apache/spark/internal/config/package$.class",
        "org/apache/spark/internal/config/Network$.class",
        "org/apache/spark/internal/config/Python$.class",
    ),
    "spark-common-utils_": (),
    "spark-kubernetes_": ("org/apache/spark/deploy/k8s/Config$.class",),
}


def texts() -> dict[str, str]:
    paths = [
        *DEPLOY.glob("kubernetes/*.yaml"),
        *(DEPLOY / name for name in ("kustomization.yaml", "compose.yaml")),
        *(DEPLOY / name for name in ("spark-defaults.conf", "Dockerfile")),
    ]
    return {str(path.relative_to(DEPLOY)): path.read_text(encoding="utf-8") for path in paths}


@cache
def spark_keys() -> frozenset[str]:
    """All names of settings that stand in the classes where Spark declares them."""
    jars = Path(pyspark.__file__).parent / "jars"
    found: set[bytes] = set()
    for prefix, classes in _JARS.items():
        for jar in jars.glob(f"{prefix}*.jar"):
            with zipfile.ZipFile(jar) as content:
                for name in classes:
                    found.update(re.findall(rb"spark(?:\.\w+)+", content.read(name)))
    return frozenset(key.decode() for key in found)


@cache
def own_spark_keys() -> frozenset[str]:
    """Settings that a session makes itself: the same in a file would mean nothing.

    On a cluster that Spark runs by itself, authentication is the operator's.
    """
    source = Path(session.__file__).read_text(encoding="utf-8")
    return frozenset(re.findall(r'"(spark\.[\w.]+)"', source)) - session.OF_LOCAL_MASTERS


@dataclass(frozen=True)
class Manifests:
    """The files as YAML documents, and what is wrong with them."""

    files: Mapping[str, str]
    documents: list[Values] = field(init=False)
    kustomization: Values = field(init=False)

    def __post_init__(self) -> None:
        parsed = [
            document
            for name, text in self.files.items()
            if name.startswith("kubernetes/")
            for document in _parsed(text)
        ]
        object.__setattr__(self, "documents", parsed)
        (loaded,) = _parsed(self.files["kustomization.yaml"])
        object.__setattr__(self, "kustomization", loaded)

    def named(self, kind: str) -> dict[str, Values]:
        found = (d for d in self.documents if d["kind"] == kind and "name" in d["metadata"])
        return {document["metadata"]["name"]: document for document in found}

    @property
    def deployment(self) -> Values:
        return self.named("Deployment")["sluice"]

    @property
    def pods(self) -> dict[str, Values]:
        (template,) = (d for d in self.documents if d["kind"] == "Pod")
        return {
            "control plane": self.deployment["spec"]["template"]["spec"],
            "executor": template["spec"],
        }

    @property
    def defaults(self) -> dict[str, str]:
        lines = self.files["spark-defaults.conf"].splitlines()
        return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the control plane with the values that they get."""
        given = dict(self.named("ConfigMap")["sluice-settings"]["data"])
        for entry in _container(self.pods["control plane"])["env"]:
            value = entry.get("value", "10.1.2.3")
            given[entry["name"]] = _REFERENCE.sub(lambda m: given.get(m[1], m[0]), value)
        return given

    def faults(self) -> list[str]:
        checks = (
            self._files,
            self._images,
            self._ports,
            self._settings,
            self._volumes,
            self._places,
            self._spark_places,
            self._security,
            self._references,
            self._accounts,
            self._memory,
            self._spark,
        )
        return [fault for check in checks for fault in check()]

    def _files(self) -> Iterator[str]:
        listed = set(self.kustomization["resources"])
        generated = set(self.kustomization["configMapGenerator"][0]["files"])
        for name in self.files:
            example = name.endswith(".example.yaml")
            mentioned = name in listed | generated
            if name.startswith("kubernetes/") and mentioned == example:
                yield f"{name} is {'applied' if example else 'not applied'}"
        for name in sorted((listed | generated) - self.files.keys()):
            yield f"{name} does not exist"
        for document in self.documents:
            if "namespace" in document["metadata"]:
                yield f"{document['kind']} names a namespace"

    def _images(self) -> Iterator[str]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        expected = f"{project['name']}:{project['version']}"
        compose = _parsed(self.files["compose.yaml"])[0]["services"]
        images = {
            "control-plane.yaml": _container(self.pods["control plane"])["image"],
            "spark-defaults.conf": self.defaults["spark.kubernetes.container.image"],
            "compose.yaml": compose["sluice"]["image"],
            "Dockerfile": _found(r"-t (\S+)", self.files["Dockerfile"]),
        }
        for place, image in images.items():
            if image != expected:
                yield f"image of {place} is {image}, expected {expected}"
        for name, service in compose.items():
            tag = service["image"].partition(":")[2]
            if not re.match(r"\d", tag):
                yield f"image of {name} has no version"

    def _ports(self) -> Iterator[str]:
        container = _container(self.pods["control plane"])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        if str(ports["https"]) != self.environment["SLUICE_PORT"]:
            yield "the container's port is not SLUICE_PORT"
        if f"EXPOSE {ports['https']}" not in self.files["Dockerfile"]:
            yield "the image exposes another port"
        routes = json.loads((ROOT / "service/api/openapi.json").read_text())["paths"]
        scheme = "HTTPS" if "SLUICE_TLS_CERT" in self.environment else "HTTP"
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container[kind]["httpGet"]
            if "get" not in routes.get(probe["path"], {}):
                yield f"{kind} asks for {probe['path']}, which is no route"
            if (probe["port"], probe["scheme"]) not in {(name, scheme) for name in ports}:
                yield f"{kind} asks a port or protocol that is not served"
        targets = [p["targetPort"] for p in self.named("Service")["sluice"]["spec"]["ports"]]
        rules = self.named("NetworkPolicy")["sluice-control-plane"]["spec"]["ingress"]
        targets += [port["port"] for rule in rules for port in rule.get("ports", ())]
        for target in targets:
            if target not in ports:
                yield f"port {target} is none of the container's"

    def _settings(self) -> Iterator[str]:
        fields = {f"{PREFIX}{name.upper()}": name for name in Settings.model_fields}
        ours = {name: v for name, v in self.environment.items() if name.startswith(PREFIX)}
        for name in sorted(ours.keys() - fields.keys()):
            yield f"{name} is no setting"
        links = self.pods["control plane"].get("enableServiceLinks", True)
        for name in self.named("Service"):
            if links and f"{name.upper()}_".startswith(PREFIX):
                yield f"variables of service {name} look like settings"
        values: Values = {fields[name]: ours[name] for name in ours.keys() & fields.keys()}
        if "spark_conf" in values:
            values["spark_conf"] = json.loads(values["spark_conf"])
        try:
            Settings.load(**values)
        except ConfigError as exc:
            yield exc.message
        known: set[str] = set()
        for entry in _container(self.pods["control plane"])["env"]:
            for reference in _REFERENCE.findall(entry.get("value", "")):
                if reference not in known:
                    yield f"{entry['name']} refers to {reference}, which does not stand before it"
            known.add(entry["name"])

    def _volumes(self) -> Iterator[str]:
        generated = self.kustomization["configMapGenerator"][0]["name"]
        there = {
            "persistentVolumeClaim": set(self.named("PersistentVolumeClaim")),
            "configMap": {generated, *self.named("ConfigMap")},
            "secret": set(self.named("Secret")),
        }
        for whose, pod in self.pods.items():
            volumes = {volume["name"] for volume in pod["volumes"]}
            mounted = {mount["name"] for mount in _container(pod)["volumeMounts"]}
            for name in sorted(volumes ^ mounted):
                yield f"{whose}: volume {name} is not both declared and mounted"
            for volume in pod["volumes"]:
                for kind, names in there.items():
                    source = volume.get(kind, {})
                    wanted = source.get("claimName", source.get("secretName", source.get("name")))
                    if source and wanted not in names:
                        yield f"{whose}: {kind} {wanted} does not exist"

    def _places(self) -> Iterator[str]:
        driver, executor = (_mounts(pod) for pod in self.pods.values())
        given = self.environment
        for name in ("DATA_DIR", "INDEX_DIR", "SECRETS_DIR", "TLS_CERT", "TLS_KEY"):
            if not _below(given[f"SLUICE_{name}"], driver):
                yield f"SLUICE_{name} is on no volume"
        for name in ("SLUICE_DATA_DIR", "SLUICE_INDEX_DIR", "TMPDIR"):
            path = given[name]
            if path not in executor or executor[path] != driver.get(path):
                yield f"{name} is another place on executors"
        keys = self.named("Secret")["sluice-tls"]["stringData"]
        for name in ("TLS_CERT", "TLS_KEY"):
            if PurePosixPath(given[f"SLUICE_{name}"]).name not in keys:
                yield f"SLUICE_{name} is none of the secret's keys"

    def _spark_places(self) -> Iterator[str]:
        driver, given = _mounts(self.pods["control plane"]), self.environment
        for name in ("SPARK_LOCAL_DIRS", "TMPDIR"):
            if "emptyDir" not in self._source("control plane", driver.get(given[name])):
                yield f"{name} is no scratch volume"
        if driver.get(given["SPARK_CONF_DIR"]) != "spark":
            yield "SPARK_CONF_DIR is not where spark-defaults.conf is"
        template = PurePosixPath(self.defaults["spark.kubernetes.executor.podTemplateFile"])
        names = {Path(f).name for f in self.kustomization["configMapGenerator"][0]["files"]}
        if str(template.parent) != given["SPARK_CONF_DIR"] or template.name not in names:
            yield "podTemplateFile is not where the template is"

    def _source(self, whose: str, volume: str | None) -> Values:
        found = (v for v in self.pods[whose]["volumes"] if v["name"] == volume)
        return next(found, {})

    def _security(self) -> Iterator[str]:
        user = int(_found(r"--uid (\d+)", self.files["Dockerfile"]))
        if f"USER {user}" not in self.files["Dockerfile"].splitlines():
            yield "the image does not run as its user"
        for whose, pod in self.pods.items():
            context = pod["securityContext"]
            if context.get("runAsNonRoot") is not True:
                yield f"{whose} may be root"
            if {context.get(key) for key in ("runAsUser", "runAsGroup", "fsGroup")} != {user}:
                yield f"{whose} is not the image's user"
            if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
                yield f"{whose} has no seccomp profile"
            if _container(pod).get("securityContext") != _HARDENED:
                yield f"{whose} may more than it needs"
        if self.pods["executor"].get("automountServiceAccountToken") is not False:
            yield "executors have a token of the API server"

    def _references(self) -> Iterator[str]:
        labels = self.deployment["spec"]["template"]["metadata"]["labels"]
        policy = self.named("NetworkPolicy")["sluice-control-plane"]["spec"]["podSelector"]
        selectors = {
            "Deployment": self.deployment["spec"]["selector"]["matchLabels"],
            "Service": self.named("Service")["sluice"]["spec"]["selector"],
            "NetworkPolicy": policy["matchLabels"],
        }
        for kind, selector in selectors.items():
            if not selector.items() <= labels.items():
                yield f"{kind} does not select the control plane"
        spec = self.deployment["spec"]
        if (spec["replicas"], spec["strategy"]["type"]) != (1, "Recreate"):
            yield "two control planes may meet on one data directory"

    def _accounts(self) -> Iterator[str]:
        accounts = self.named("ServiceAccount")
        for whose, pod in self.pods.items():
            if pod["serviceAccountName"] not in accounts:
                yield f"{whose} has an account that does not exist"
        binding = self.named("RoleBinding")["sluice-driver"]
        bound = {subject["name"] for subject in binding["subjects"]}
        if bound != {self.pods["control plane"]["serviceAccountName"]}:
            yield "the role is not bound to the driver's account"
        rules = self.named("Role")[binding["roleRef"]["name"]]["rules"]
        verbs = {r: set(rule["verbs"]) for rule in rules for r in rule["resources"]}
        needed = {"create", "get", "list", "watch", "delete"}
        for resource in ("pods", "configmaps"):
            if not needed <= verbs.get(resource, set()):
                yield f"the driver cannot make and remove {resource}"
        for word in sorted(set().union(verbs, *verbs.values()) & {"*", "secrets"}):
            yield f"the driver may have {word}"

    def _memory(self) -> Iterator[str]:
        resources = _container(self.pods["control plane"])["resources"]
        heap = _mib(self.environment["SLUICE_SPARK_DRIVER_MEMORY"])
        if heap + 1024 > _mib(resources["requests"]["memory"]):
            yield "one runner does not fit the memory that is requested"
        if "memory" not in resources["limits"]:
            yield "the control plane has no limit of memory"
        scratch = [
            volume["emptyDir"]["sizeLimit"]
            for volume in self.pods["control plane"]["volumes"]
            if "emptyDir" in volume
        ]
        if sum(map(_mib, scratch)) > _mib(resources["limits"]["ephemeral-storage"]):
            yield "the scratch volumes may have more than the pod"

    def _spark(self) -> Iterator[str]:
        given = json.loads(self.environment["SLUICE_SPARK_CONF"])
        for key in sorted({*self.defaults, *given} - spark_keys() - own_spark_keys()):
            yield f"{key} is no setting of Spark"
        for key in sorted(self.defaults.keys() & own_spark_keys()):
            yield f"{key} is set by Sluice itself, the file has no effect"
        name = self.defaults["spark.kubernetes.executor.podTemplateContainerName"]
        if _container(self.pods["executor"])["name"] != name:
            yield "the template's container is not the one that Spark looks for"
        needed = ("spark.driver.host", "spark.kubernetes.driver.pod.name")
        for key in (*needed, "spark.kubernetes.namespace"):
            if "$(" not in self._raw_spark_conf().get(key, ""):
                yield f"{key} does not come from the pod"

    def _raw_spark_conf(self) -> dict[str, str]:
        entries = _container(self.pods["control plane"])["env"]
        (text,) = (e["value"] for e in entries if e["name"] == "SLUICE_SPARK_CONF")
        found: dict[str, str] = json.loads(text)
        return found


@cache
def _parsed(text: str) -> list[Values]:
    return list(yaml.safe_load_all(text))


def _container(pod: Values) -> Values:
    (container,) = pod["containers"]
    return dict(container)


def _mounts(pod: Values) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in _container(pod)["volumeMounts"]}


def _below(path: str, mounts: Mapping[str, str]) -> bool:
    return any(
        str(place) in mounts for place in (PurePosixPath(path), *PurePosixPath(path).parents)
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else "nothing"


def _mib(quantity: str) -> float:
    number, unit = re.fullmatch(r"(\d+)([a-zA-Z]*)", quantity).groups()  # type: ignore[union-attr]
    return int(number) * {"g": 1024, "m": 1, "Gi": 1024, "Mi": 1}[unit]
