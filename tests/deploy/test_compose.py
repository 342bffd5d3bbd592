"""The Compose file: valid, and every service of ours locked in as the guide says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, Json, compose, services
from tests.deploy.files import OURS as TARGETS
from tests.tools import require_tool
from tiny_harness.config_file import read_settings
from tiny_harness.settings import Settings

MODEL_KEYS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_secrets(tmp_path_factory.mktemp("made") / "secrets")


def make_secrets(folder: Path) -> Path:
    """Run the script of the guide."""
    require_tool("openssl")
    script = DEPLOY / "make-secrets.sh"
    env = {**os.environ, "OPENAI_API_KEY": "no key at all"}
    subprocess.run(["sh", script, folder], env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
    return folder


def variables(secrets: Path, service: Json) -> dict[str, str]:
    """What a service finds in its environment."""
    lines = [line for name in service.get("env_file", ()) for line in (secrets.parent / name).read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines) | service.get("environment", {})


def test_it_is_a_compose_file() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, DEPLOY / "compose.yaml"], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_two_gateways_and_two_engines() -> None:
    first, second = services()["gateway-1"], services()["gateway-2"]
    assert {key: value for key, value in first.items() if key != "build"} == second
    assert services()["engine"]["deploy"]["replicas"] == 2


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_has_a_read_only_root_and_gets_no_rights(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged")
    assert not any("docker.sock" in volume for volume in service.get("volumes", ()))
    if name != "postgres":  # its own start changes from root to a user who owns the data
        assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_can_be_told_healthy_from_ill(name: str) -> None:
    service = services()[name]
    if name in ("migrate", "tools"):
        assert service["healthcheck"] == {"disable": True}, "they end"
    else:
        assert "healthcheck" in service or service["image"].startswith("tiny-harness"), "test_containerfile: it has one"


def test_whoever_starts_waits_for_what_it_needs() -> None:
    for name in ("gateway-1", "gateway-2", "engine"):
        waits = services()[name]["depends_on"]
        assert waits["migrate"] == {"condition": "service_completed_successfully"}
        assert waits["temporal"] == waits["redis"] == {"condition": "service_healthy"}
    assert services()["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_each_image_of_ours_is_built_once_and_is_used_under_its_name() -> None:
    built = [service for service in services().values() if "build" in service]
    names = [service["image"] for service in built]
    assert sorted(names) == sorted(set(names))
    assert {service["build"]["target"] for service in built} == set(TARGETS)
    for service in services().values():
        assert service["image"] in names or not service["image"].startswith("tiny-harness")


def test_only_the_proxy_is_published_and_only_on_this_machine() -> None:
    assert {name for name, service in services().items() if "ports" in service} == {"proxy"}
    assert services()["proxy"]["ports"] == ["127.0.0.1:8080:8080"]


def test_the_proxy_reaches_gateways_alone_and_data_is_behind_an_inner_network() -> None:
    networks: dict[str, set[str]] = {name: set(service["networks"]) for name, service in services().items()}
    assert networks["proxy"] == {"front"}
    inner = {name for name, network in compose()["networks"].items() if network.get("internal")}
    for name in ("postgres", "redis", "temporal", "hooks", "migrate"):
        assert networks[name] <= inner, name
    assert not networks["hooks"] & networks["postgres"], "a hook host has no business with the store"


def test_no_secret_stands_in_a_file_of_the_repository() -> None:
    """Only addresses of files that `make-secrets.sh` makes, which git does not look at."""
    assert all(source["file"].startswith("secrets/") for source in compose()["secrets"].values())
    for service in services().values():
        assert all(name.startswith("secrets/") for name in service.get("env_file", ()))
        inline: dict[str, Any] = service.get("environment", {})
        assert not [name for name in inline if re.search("PASSWORD$|KEY|SECRET|TOKEN|URL", name)]
    assert "deploy/secrets/" in (DEPLOY.parent / ".gitignore").read_text().splitlines()


def test_every_service_gets_the_secrets_that_it_needs_and_no_others(secrets: Path) -> None:
    store = {f"TINY_HARNESS_{name}" for name in ("STORE_URL", "REDIS_URL", "SEAL_KEYS", "PUSH_KEY")}
    hook = {"TINY_HARNESS_HOOK_SECRET_HOOKS"}
    for name in ("gateway-1", "gateway-2", "migrate", "tools"):
        assert set(variables(secrets, services()[name])) == store, "no model key"
    assert set(variables(secrets, services()["engine"])) == store | hook | MODEL_KEYS
    assert set(variables(secrets, services()["hooks"])) == hook
    assert not variables(secrets, services()["temporal"])


def test_secrets_are_made_once_and_are_nobody_elses(secrets: Path) -> None:
    assert secrets.stat().st_mode & 0o077 == 0
    assert (secrets / "ca.key").stat().st_mode & 0o077 == 0
    before = {file.name: file.read_bytes() for file in secrets.iterdir()}
    assert set(compose()["secrets"]) <= set(before)
    make_secrets(secrets)
    assert {file.name: file.read_bytes() for file in secrets.iterdir()} == before
    other = make_secrets(secrets.with_name("others"))
    assert (other / "common.env").read_bytes() != before["common.env"]


def test_a_hook_hosts_certificate_is_renewed_under_the_same_authority(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path / "secrets")
    authority, first = (secrets / "ca.pem").read_bytes(), (secrets / "hooks.pem").read_bytes()
    (secrets / "hooks.pem").unlink()
    make_secrets(secrets)
    assert (secrets / "ca.pem").read_bytes() == authority
    assert (secrets / "hooks.pem").read_bytes() != first
    verify = ["openssl", "verify", "-x509_strict", "-verify_hostname", "hooks", "-CAfile", "ca.pem", "hooks.pem"]
    subprocess.run(verify, cwd=secrets, check=True, stdout=subprocess.DEVNULL, timeout=60)


@pytest.mark.parametrize("name", ["gateway", "engine"])
def test_a_configuration_file_is_one_that_its_service_takes(name: str) -> None:
    settings = read_settings(Settings, DEPLOY / "config" / f"{name}.toml")
    assert settings.temporal.mode == "remote"
    assert settings.store.url is None, "a secret"
    assert settings.redis.url is None, "a secret"


def test_the_engines_plugin_and_the_hook_host_know_the_same_commands() -> None:
    engine, host = (DEPLOY / "plugins" / side / "house-rules" for side in ("engine", "hooks"))
    [[there], [here]] = (
        [json.loads(path.read_text())["executors"] for path in folder.glob("*/hooks.json")] for folder in (engine, host)
    )
    assert [(each["point"], each.get("command")) for each in there] == [
        (each["point"], each.get("command")) for each in here
    ]
    assert (engine / "plugin.json").read_text() == (host / "plugin.json").read_text()
