"""The laboratory: the numbers are those of the command, whatever the threads."""

import json
import subprocess
import sys

import numpy as np
import pytest
import segstream
from conftest import PATIENCE, program

pytest.importorskip("xarray")
from segstream import lab
from segstream.lab._job import Bar

POINT = {"rtt": "60ms", "bandwidth": "500mbit", "loss": 1e-3, "tolerance": (256, 1, 1), "packets": 50_000}


def test_one_run_has_the_numbers_of_the_command():
    flags = ["--rtt", "60ms", "--bandwidth", "500mbit", "--loss", "1e-3", "--tolerance", "256,1,1", "--packets", "50000"]
    command = [program("segstream"), "sim", "sstp", *flags, "--ack", "soft-lazy", "--replications", "3", "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=4 * PATIENCE).stdout)
    data = lab.simulate("sstp", seeds=3, ack="soft-lazy", **POINT)
    assert data.sizes == {"seed": 3}
    for name in ("throughput_efficiency", "goodput_bps", "delay_ms_p99", "packets_sent", "packets_retransmitted"):
        assert data[f"{name}_mean"].item() == pytest.approx(told[name], rel=1e-12), name
        half = told.get(f"{name}_ci95", np.nan)
        assert data[f"{name}_ci95"].item() == pytest.approx(half, rel=1e-12, nan_ok=True), name
        if name != "delay_ms_p99":  # Its estimate is no mean of runs.
            assert data[name].mean().item() == pytest.approx(told[name], rel=1e-9), name
    assert data["delay_ms_max"].item() == told["delay_ms_max"]


@pytest.mark.parametrize("scheme", ["segstream", "sstp", "snr", "htpnet", "tcp", "adaptive-ack", "sscop"])
def test_what_is_not_given_is_as_in_the_command(scheme):
    command = [program("segstream"), "sim", scheme, "--packets", "2000", "--loss", "1e-2", "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=4 * PATIENCE).stdout)
    data = lab.simulate(scheme, packets=2000, loss=1e-2)
    for name in ("packets_sent", "packets_retransmitted", "packets_lost", "feedback_packets", "segments_delivered"):
        assert data[name].item() == told[name], name


def test_a_grid_has_a_dimension_for_each_parameter_and_common_random_numbers():
    grid = {"scheme": ["sstp", "segstream"], "loss": [0.001, 0.01], "tolerance": ["reliable", "1,1"]}
    data = lab.sweep(grid, seeds=2, packets=10_000)
    assert dict(data.sizes) == {"scheme": 2, "loss": 2, "tolerance": 2, "seed": 2}
    assert list(data["loss"].values) == [0.001, 0.01] and list(data["scheme"].values) == ["sstp", "segstream"]
    alone = lab.simulate("segstream", seeds=2, packets=10_000, loss=0.01, tolerance="1,1", threads=1)
    # Why a dictionary: `tolerance` is a keyword of xarray's own in `sel`.
    chosen = data.sel({"scheme": "segstream", "loss": 0.01, "tolerance": "1,1"})
    for name in ("packets_sent", "delay_ms_mean", "throughput_efficiency"):
        np.testing.assert_array_equal(chosen[name].values, alone[name].values)
    assert (data["packets_lost"].sel(loss=0.01) > data["packets_lost"].sel(loss=0.001)).all()


def test_a_scenario_is_a_dictionary_that_means_itself():
    scenario = lab.scenario("sstp", rtt=0.06, bandwidth=5e8, ack="soft-eager", tolerance="any", window=7)
    assert scenario["rtt_ns"] == 60_000_000 and scenario["window_segments"] == 7 and scenario["tolerance"] == [256, 256, 256]
    assert lab.scenario(**scenario) == scenario
    assert set(lab.schemes()) >= {"segstream", "sstp", "snr", "htpnet", "tcp", "adaptive-ack", "sscop"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheme": "udp"},
        {"rtt": "60 parsecs"},
        {"bandwidth": -1},
        {"tolerance": (1, 2)},
        {"loss": "often"},
        {"colour": "red"},
        {"ack": "never"},
        {"packets": 1.5},
        {"scheme": "tcp", "ack": "soft-lazy"},
    ],
)
def test_what_cannot_be_run_is_the_callers_fault(wrong):
    with pytest.raises(segstream.UsageError) as caught:
        lab.simulate(**wrong)
    assert caught.value.fault == "caller"


def test_a_store_is_not_computed_twice(tmp_path):
    first = lab.sweep({"loss": [1e-3, 1e-2]}, seeds=2, packets=5000, store=tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = lab.sweep({"loss": [1e-3, 1e-2]}, seeds=2, packets=5000, store=tmp_path)
    assert kept and kept == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert first.equals(again)


def test_a_study_gives_points_pictures_and_claims_as_expected():
    result = lab.study("ht/fig8")
    assert result.troubles == [] and len(result.claims) > 0 and "ht/fig8" in lab.studies()
    expected = (program("segstream").parents[2] / "studies/ht/fig8/expected.csv").read_text()
    curves = [line.split('"')[1] for line in expected.splitlines()[1:]]
    assert list(result.dataset["curve"].values) == curves
    rates = [float(line.split('"')[2].split(",")[2]) for line in expected.splitlines()[1:]]
    np.testing.assert_allclose(result.dataset["packets_per_second"].values, rates, rtol=1e-5)
    picture = result.pictures[0]
    assert picture._repr_svg_().startswith("<svg") and "<svg" in result._repr_html_()


def test_ctrl_c_ends_a_sweep():
    source = (
        "import os, signal, threading\n"
        "from segstream import lab\n"
        # A process that was started in the background ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    lab.sweep({'loss': [1e-3 + 1e-6 * n for n in range(2000)]}, packets=1_000_000)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=4 * PATIENCE)
    assert ended.stdout.strip() == "interrupted", ended.stderr


def test_the_progress_bar_is_drawn_where_it_is_asked_for(capsys):
    lab.sweep({"loss": [1e-3, 1e-2]}, packets=5000, progress=True)
    assert "2 of 2 runs [" in capsys.readouterr().err
    lab.sweep({"loss": [1e-3]}, packets=5000)
    assert capsys.readouterr().err == ""
    bar = Bar(False)
    bar.draw(1, 2)
    bar.finish()
    assert capsys.readouterr().err == ""
