"""The Kubernetes overlays: rendered, valid, and every pod of ours locked in as the guide says."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.files import DEPLOY, Json, instruction, listed, services
from tests.tools import require_tool
from tiny_harness.config_file import read_settings
from tiny_harness.settings import Settings

OVERLAYS = ("development", "production")
SERVICES = ("gateway", "engine", "hooks")
MODEL_KEYS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}

overlays = pytest.mark.parametrize("overlay", OVERLAYS)
services_of_ours = pytest.mark.parametrize("name", SERVICES)


@cache
def rendered(overlay: str) -> list[Json]:
    """Render an overlay."""
    command = [require_tool("kubectl"), "kustomize", str(DEPLOY / "kubernetes" / overlay)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "a warning"
    return list(yaml.safe_load_all(done.stdout))


def of_kind(overlay: str, kind: str) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in rendered(overlay) if each["kind"] == kind}


def pods(overlay: str) -> Iterator[tuple[str, Json]]:
    """Name and specification of every pod."""
    for each in rendered(overlay):
        if "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def pod(overlay: str, name: str) -> Json:
    return dict(pods(overlay))[name]


def container(overlay: str, name: str) -> Json:
    [only] = pod(overlay, name)["containers"]
    return only


def labels(overlay: str, name: str) -> dict[str, str]:
    return next(
        each["spec"]["template"]["metadata"]["labels"]
        for each in rendered(overlay)
        if each["metadata"]["name"] == name and "template" in each.get("spec", {})
    )


@overlays
def test_every_object_is_one_that_kubernetes_takes(overlay: str) -> None:
    assert len(rendered(overlay)) > 20
    for each in rendered(overlay):
        kubernetes_validate.validate(each, "1.34", strict=True)


@overlays
def test_every_pod_runs_as_nobody_with_a_read_only_root_and_no_rights(overlay: str) -> None:
    for name, spec in pods(overlay):
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        for each in spec["containers"]:
            own = each["securityContext"]
            assert own["readOnlyRootFilesystem"] is True, name
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert {"cpu", "memory"} <= set(each["resources"]["requests"])
            assert each["resources"]["limits"]["memory"]


@overlays
def test_secrets_are_named_and_never_written_down(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
    for name, spec in pods(overlay):
        for each in spec["containers"]:
            for variable in each.get("env", ()):
                is_secret = re.search("KEY|SECRET|PASSWORD$|TOKEN|URL$", variable["name"])
                assert not is_secret or "secretKeyRef" in variable["valueFrom"], (name, variable["name"])


@overlays
def test_only_engines_have_the_key_of_a_model(overlay: str) -> None:
    for name, spec in pods(overlay):
        for each in spec["containers"]:
            held = {variable["name"] for variable in each.get("env", ())}
            assert (held & MODEL_KEYS == MODEL_KEYS) == (name == "engine"), name
            assert "envFrom" not in each, "it would bring whatever the secret has"
    assert {"tiny-harness-models"}.isdisjoint(re.findall("tiny-harness-models", str(pod(overlay, "gateway"))))


@overlays
@services_of_ours
def test_a_pod_says_when_it_started_lives_and_is_ready(overlay: str, name: str) -> None:
    own = container(overlay, name)
    ports = {port["name"] for port in own["ports"]}
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert own[kind]["httpGet"]["port"] in ports
    assert own["livenessProbe"]["httpGet"]["path"] == "/healthz", "a lost neighbour is no reason to be killed"
    assert own["readinessProbe"]["httpGet"]["path"] == ("/healthz" if name == "hooks" else "/readyz")
    host = own["readinessProbe"]["httpGet"].get("httpHeaders")
    assert (host == [{"name": "Host", "value": "localhost"}]) == (name == "gateway")


@overlays
@services_of_ours
def test_a_pod_starts_what_its_image_starts(overlay: str, name: str) -> None:
    own = container(overlay, name)
    assert "command" not in own, "the image's entry point"
    assert {str(port["containerPort"]) for port in own["ports"]} == {instruction(name, "EXPOSE")}
    if name != "hooks":
        assert own["args"] == listed(name, "CMD")


@overlays
@services_of_ours
def test_a_disruption_takes_one_at_a_time_and_a_stop_has_the_time_to_drain(overlay: str, name: str) -> None:
    budget = of_kind(overlay, "PodDisruptionBudget")[name]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= labels(overlay, name).items()
    key = "gateway-1" if name == "gateway" else name
    grace = int(services()[key]["stop_grace_period"].removesuffix("s"))
    assert pod(overlay, name)["terminationGracePeriodSeconds"] >= grace


@overlays
def test_gateways_and_engines_grow_with_their_work(overlay: str) -> None:
    scalers = of_kind(overlay, "HorizontalPodAutoscaler")
    assert set(scalers) == {"gateway", "engine"}
    for name, scaler in scalers.items():
        assert scaler["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        assert "replicas" not in of_kind(overlay, "Deployment")[name]["spec"], "an apply would undo what it did"
        assert scaler["spec"]["minReplicas"] == (2 if overlay == "production" else 1)


def allowed(overlay: str, name: str, way: str) -> list[Json]:
    """The rules of all network policies that hold for a service."""
    found: list[Any] = []
    for policy in of_kind(overlay, "NetworkPolicy").values():
        if way.capitalize() in policy["spec"]["policyTypes"] and _selects(
            policy["spec"]["podSelector"], labels(overlay, name)
        ):
            found += policy["spec"].get(way, [])
    return found


def _selects(selector: Json, own: dict[str, str]) -> bool:
    matched = selector.get("matchLabels", {}).items() <= own.items()
    return matched and all(own.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ()))


@overlays
@services_of_ours
def test_the_network_lets_a_pod_do_its_work_and_nothing_else(overlay: str, name: str) -> None:
    """Reading from the rules what may come in and where it may go."""
    nobody = of_kind(overlay, "NetworkPolicy")["nobody"]["spec"]
    assert _selects(nobody["podSelector"], labels(overlay, name))
    assert nobody["policyTypes"] == ["Ingress", "Egress"]
    ingress = {port["port"] for rule in allowed(overlay, name, "ingress") for port in rule["ports"]}
    egress = {port["port"] for rule in allowed(overlay, name, "egress") for port in rule["ports"]}
    assert ingress == {"gateway": {8080}, "engine": set[int](), "hooks": {8090}}[name]
    neighbours = {5432, 6379, 7233}
    expected = {"gateway": neighbours | {443}, "engine": neighbours | {443, 8090}, "hooks": set[int]()}
    assert egress - {53} == expected[name]


@pytest.mark.parametrize("name", ["postgres", "redis", "temporal"])
def test_in_development_only_our_services_reach_what_they_share(name: str) -> None:
    assert "nobody" in of_kind("development", "NetworkPolicy")
    [rule] = allowed("development", name, "ingress")
    [source] = rule["from"]
    assert not _selects(source["podSelector"], labels("development", "hooks"))
    assert _selects(source["podSelector"], labels("development", "gateway"))


@overlays
@pytest.mark.parametrize("name", ["gateway", "engine"])
def test_the_configuration_is_one_that_the_service_takes(overlay: str, name: str, tmp_path: Path) -> None:
    volumes = {volume["name"]: volume for volume in pod(overlay, name)["volumes"]}
    data = of_kind(overlay, "ConfigMap")[volumes["config"]["configMap"]["name"]]["data"]
    [(file, text)] = data.items()
    mounts = {mount["name"]: mount["mountPath"] for mount in container(overlay, name)["volumeMounts"]}
    assert f"{mounts['config']}/{file}" in container(overlay, name)["args"]
    (tmp_path / file).write_text(text)
    settings = read_settings(Settings, tmp_path / file)
    assert settings.server.host == "0.0.0.0" or name == "engine"
    assert settings.store.max_connections * 20 + 20 < 500, "ten gateways and ten engines fit a server of 500"


@overlays
def test_services_lead_to_ports_that_are_there(overlay: str) -> None:
    for name, service in of_kind(overlay, "Service").items():
        [port] = service["spec"]["ports"]
        assert service["spec"]["selector"].items() <= labels(overlay, name).items()
        assert port["targetPort"] in {own["name"] for own in container(overlay, name)["ports"]}


def test_production_names_its_images_and_ends_tls_at_an_ingress() -> None:
    for name, spec in pods("production"):
        for each in spec["containers"]:
            assert re.fullmatch(r"images\.example\.com/[\w-]+:[\d.]+", each["image"]), name
    [ingress] = of_kind("production", "Ingress").values()
    [rule] = ingress["spec"]["rules"]
    config = read_settings(Settings, DEPLOY / "kubernetes" / "production" / "gateway.toml")
    assert config.server.base_url == f"https://{rule['host']}"
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
