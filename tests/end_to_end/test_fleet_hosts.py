"""examples/fleet/hosts: what docker would start on three hosts, read by the parsers that read it.

No docker runs here. What is checked is that the files fit each other, the image and the code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from crewlet.cli.up import up
from crewlet.company import load_company
from crewlet.company.node_file import NodeSettings, load_node_settings
from crewlet.web.app import make_app

pytestmark = pytest.mark.certifies(9)

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = EXAMPLES / "fleet"
IMAGE = (EXAMPLES / "docker" / "Dockerfile").read_text()
HOSTS = {f"HOST_{at}": f"10.0.0.{at}" for at in (1, 2, 3)}


def _service(at: int) -> dict[str, Any]:
    """The one service, as compose has it on host `at`."""
    text = (FLEET / "hosts" / "docker-compose.yml").read_text()
    env = {"NODE_ID": f"node-{at}", "HOST": HOSTS[f"HOST_{at}"], **HOSTS}
    filled = re.sub(r"\$\{(\w+):\?\}", lambda found: env[found[1]], text)
    assert "${" not in filled, "a variable that may be missing without a word"
    services: dict[str, Any] = yaml.safe_load(filled)["services"]
    assert list(services) == ["crewlet"]
    return services["crewlet"]  # type: ignore[no-any-return]


def _settings(at: int) -> NodeSettings:
    """Of the node file, by the environment that the service is given and nothing else."""
    env = {name: str(value) for name, value in _service(at)["environment"].items()}
    return load_node_settings(FLEET / "hosts" / "node.yaml", env=env)


def _mounts() -> dict[str, tuple[str, str]]:
    """By path in the container: where it comes from, and how it is mounted."""
    parts = (volume.split(":") for volume in _service(1)["volumes"])
    return {one[1]: (one[0], one[2] if len(one) > 2 else "rw") for one in parts}


def _words() -> list[str]:
    """What the image runs: no service states another command."""
    assert not {"command", "entrypoint", "user"} & _service(1).keys()
    found = re.search(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)
    assert found is not None
    words: list[str] = json.loads(found[1])
    return words


def test_three_hosts_are_three_members_of_one_cluster() -> None:
    nodes = [_settings(at) for at in (1, 2, 3)]
    clusters = [node.stream.cluster for node in nodes if node.stream.cluster is not None]
    assert len({node.node.id for node in nodes}) == len(clusters) == 3
    assert len({(one.name, one.peers, one.secret_file) for one in clusters}) == 1
    for at, cluster in enumerate(clusters, 1):
        assert cluster.peers[at - 1] == f"{HOSTS[f'HOST_{at}']}:{cluster.port}"
        assert cluster.host == "0.0.0.0", "nobody outside of the container reaches it"


def test_the_ports_that_are_published_are_those_that_are_listened_on() -> None:
    """The members' at the address that they share only, the web edge on the loopback only."""
    for at in (1, 2, 3):
        node = _settings(at)
        assert node.stream.cluster is not None
        members, api = node.stream.cluster.port, node.api.port
        assert set(_service(at)["ports"]) == {
            f"{HOSTS[f'HOST_{at}']}:{members}:{members}",
            f"127.0.0.1:{api}:{api}",
        }


def test_what_the_command_reads_is_mounted_and_read_by_it() -> None:
    words, mounts = _words(), _mounts()
    assert words.pop(0) == "up"
    company = words[0]
    node, data = (words[words.index(option) + 1] for option in ("--node", "--data"))
    assert mounts[company] == ("./company.yaml", "ro") and mounts[node] == ("./node.yaml", "ro")
    here = {company: FLEET / "company.yaml", node: FLEET / "hosts" / "node.yaml"}
    with up.make_context("up", [str(here.get(word, word)) for word in words]) as parsed:
        given = parsed.params
    assert (given["company"], given["node"]) == (here[company], here[node])
    assert str(given["data"]) == data and load_company(given["company"]).name
    cluster = _settings(1).stream.cluster
    assert cluster is not None and mounts[cluster.secret_file] == ("./cluster.secret", "ro")
    kept, how = mounts[data]
    assert not kept.startswith((".", "/")), "a folder of the host's is not 0700 by itself"
    assert how == "rw" and f"install -d -m 0700 -o crewlet -g crewlet {data} " in IMAGE


def test_it_is_asked_for_its_health_where_it_answers_and_has_the_time_to_stop() -> None:
    service, node = _service(1), _settings(1)
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", service["healthcheck"]["test"][-1])
    assert found is not None and int(found[1]) == node.api.port
    edge: Any = None  # routes are made without asking it
    assert found[2] in {getattr(route, "path", "") for route in make_app(edge).routes}
    compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert service["healthcheck"]["start_period"] == "5m"
    assert int(service["stop_grace_period"].removesuffix("s")) >= node.drain_timeout_s + 10
