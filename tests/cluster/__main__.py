"""`make cluster`: a deployment on this machine, for somebody to look at. Ctrl-C ends it, and leaves nothing."""

import asyncio
import signal
import tempfile
from pathlib import Path

from tests.cluster.cluster import Cluster, running_cluster
from tests.postgres import find_programs

PORT = 8080


async def main() -> None:
    """Run it until told to stop."""
    this = asyncio.current_task()
    assert this is not None
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, this.cancel)
    store = "postgres" if find_programs() else "sqlite"
    print(f"starting a cluster on {'PostgreSQL' if store == 'postgres' else 'one SQLite file'} ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="th-cluster-") as folder:
        try:
            async with running_cluster(Path(folder), store=store, port=PORT) as cluster:
                print(await _words(cluster), flush=True)
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("\nstopping ...", flush=True)


async def _words(cluster: Cluster) -> str:
    token = await cluster.token("you")
    gateways = ", ".join(f"http://127.0.0.1:{port}" for port in cluster.gateway_ports)
    lines = {
        "balancer": cluster.url,
        "gateways": gateways,
        "engines": f"{len(cluster.engines)}, with a hook host",
        "Temporal": cluster.settings.temporal.address,
        "store": cluster.settings.store.url or str(cluster.settings.store.sqlite_path),
        "Redis": cluster.settings.redis.url or "none",
        "files": str(cluster.folder),
        "token": token,
        "try": f"tiny-harness send --url {cluster.url} --token {token} hello",
    }
    return "\n".join(f"{name:<10}{value}" for name, value in lines.items())


if __name__ == "__main__":
    asyncio.run(main())
