"""The examples of batches, on clusters of two workers of which one is killed while it works."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pyarrow
import pyarrow.dataset
from conftest import EXAMPLES

#: Options of Java for a program that ends soon.
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: Longest wait for another worker, in seconds.
MAX_WAIT = 60


def read_results(folder) -> list[tuple]:
    """Id, verdict and first error of each row, by id; each row occurs once if the result is whole."""
    files = [str(path) for path in sorted(pathlib.Path(folder).rglob("*.parquet"))]
    table = pyarrow.dataset.dataset(files).to_table(columns=["id", "passed", "first_error"])
    return sorted(zip(*(column.to_pylist() for column in table.columns)), key=lambda row: row[0])


def find_ancestor(name: str) -> int:
    """Id of the closest process above this one whose command has `name`."""
    pid = os.getpid()
    while pid > 1:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        pid = int(re.search(r"^PPid:\t(\d+)$", status, re.MULTILINE).group(1))
        if name in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise RuntimeError(f"no process above this one is called {name}")


def check_and_kill(batch, *, folder: str, worker: str):
    """The check of the example, which once kills the worker that it runs in, with a task half done.

    `batch` is a batch, or an iterator of them. The first task to come waits until another worker has done something, so that
    the one that is killed has company.
    """
    import tambour.arrow

    check = functools.partial(tambour.arrow.check, contract="thinkingml", keep=["id"], threads=1)
    marks = pathlib.Path(folder)
    own = find_ancestor(worker)
    (marks / f"worker-{own}").touch()
    deadline = time.monotonic() + MAX_WAIT
    while len(list(marks.glob("worker-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        (marks / "killed").touch(exist_ok=False)
    except FileExistsError:
        return check(batch)
    (marks / "victim").write_text(str(own))
    # A process of Ray would outlive its worker for a while.
    os.kill(own, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def assert_killed(marks: pathlib.Path) -> None:
    workers = {path.name.removeprefix("worker-") for path in marks.glob("worker-*")}
    victim = (marks / "victim").read_text()
    assert victim in workers and len(workers) >= 2
    assert not pathlib.Path(f"/proc/{victim}").exists() or "zombie" in pathlib.Path(f"/proc/{victim}/status").read_text()


def test_ray_with_a_killed_worker(tmp_path, source, verdicts, monkeypatch):
    # Read when Ray is loaded: all its processes talk to 127.0.0.1.
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent))
    import ray
    import ray_check
    from ray.cluster_utils import Cluster

    marks = tmp_path / "marks"
    marks.mkdir()
    local = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **local})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, **local)
        ray.init(address=cluster.address, _node_ip_address="127.0.0.1", logging_level="error")
        function = functools.partial(check_and_kill, folder=str(marks), worker="raylet")
        ray_check.run(str(source), str(tmp_path / "checked"), function, batch_size=100)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert_killed(marks)
    assert read_results(tmp_path / "checked") == verdicts


def test_spark_with_a_killed_worker(tmp_path, source, verdicts, monkeypatch):
    import spark_check
    from pyspark.sql import SparkSession

    marks = tmp_path / "marks"
    marks.mkdir()
    for name, value in (
        ("PYSPARK_PYTHON", sys.executable),
        ("PYTHONPATH", os.pathsep.join([str(EXAMPLES), str(pathlib.Path(__file__).parent)])),
        ("SPARK_LOCAL_IP", "127.0.0.1"),
        ("SPARK_LOCAL_HOSTNAME", "localhost"),
    ):
        monkeypatch.setenv(name, value)
    builder = SparkSession.builder.master("local-cluster[2,1,512]")
    for name, value in (
        ("spark.driver.host", "127.0.0.1"),
        ("spark.executor.memory", "512m"),
        ("spark.sql.warehouse.dir", str(tmp_path / "warehouse")),
        ("spark.ui.enabled", "false"),
        # Three machines start for a few seconds of work, so what makes long work fast only costs time.
        ("spark.driver.extraJavaOptions", FAST_START),
        ("spark.executor.extraJavaOptions", FAST_START),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.codegen.wholeStage", "false"),
        ("spark.speculation", "false"),
    ):
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        function = functools.partial(check_and_kill, folder=str(marks), worker="CoarseGrainedExecutorBackend")
        spark_check.run(spark, str(source), str(tmp_path / "checked"), function, parts=6)
    finally:
        spark.stop()
    assert_killed(marks)
    assert read_results(tmp_path / "checked") == verdicts


def run_polars(source) -> str:
    program = [sys.executable, str(EXAMPLES / "polars_check.py"), str(source)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_polars(source, verdicts):
    output = run_polars(source)
    passed = sum(bool(row[1]) for row in verdicts)
    assert output.splitlines()[0] == f"{passed} of {len(verdicts)} replies pass"
    assert "T-033 phase_id_not_consecutive: " in output


def test_the_page_shows_what_the_program_prints():
    page = (EXAMPLES / "README.md").read_text()
    printed = page.split("$ python polars_check.py replies.jsonl\n")[1].split("```")[0]
    assert run_polars(EXAMPLES / "replies.jsonl") == printed


def test_datafusion(replies, verdicts):
    import datafusion
    import tambour.arrow

    context = datafusion.SessionContext()
    frame = context.from_arrow(pyarrow.Table.from_pylist(replies))
    result = tambour.arrow.check(frame, contract="thinkingml", keep=["id"])
    rows = pyarrow.table(context.from_arrow(result)).select(["id", "passed", "first_error"])
    assert [tuple(row.values()) for row in rows.to_pylist()] == verdicts
