"""Values and series of applications, computed from finished runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from rampmeter._core import PlanError
from rampmeter.apps import detector, reframer, storage
from rampmeter.apps.capture import Arrivals
from rampmeter.papers.metric import Metric
from rampmeter.results import Run
from rampmeter.toml import TomlValue

Settings: TypeAlias = Mapping[str, TomlValue]
"""The `app` table of a figure's run."""

Points: TypeAlias = Sequence[float]
"""The values at which a metric is computed; empty for one value a run."""

Compute: TypeAlias = Callable[[Run, Points, Settings], list[float]]
"""A metric: a value a point, or a single one."""


def of_application(metric: Metric, run: Run, points: Points, settings: Settings) -> list[float]:
    """Returns the values of a metric of an application: one for each point, or a single one."""
    return OF_APPLICATIONS[metric](run, points, settings)


def probes_of(run: Run) -> dict[str, Any]:
    """Returns probes, suspicions and crashes of a run as plain values, in microseconds."""
    probes = detector.Probes.of(run)
    return {
        "sent": probes.sent_us.tolist(),
        "answered": (probes.sent_us + probes.fate_us)[probes.answered].tolist(),
        "suspected": detector.suspicions_us(probes).tolist(),
        "crashes": [[one.from_us, one.until_us] for one in detector.outages(run)],
    }


def crashes_of(run: Run) -> dict[str, Any]:
    """Returns the detections of crashes of a run as plain values, in microseconds."""
    probes, crashes = detector.Probes.of(run), detector.outages(run)
    at = np.array([crash.from_us for crash in crashes])
    last = probes.sent_us[np.searchsorted(probes.sent_us, at, side="right") - 1]
    return {
        "since_probe": (at - last).tolist(),
        "detection": detector.detections_us(probes, crashes).tolist(),
        "limit": detector.limit_us(probes),
    }


def _detection_us(run: Run, points: Points, settings: Settings) -> list[float]:
    after = detector.detections_us(detector.Probes.of(run), detector.outages(run))
    # An undetected crash makes the maximum NaN.
    return [float(np.max(after, initial=0.0))]


def _detection_limit_us(run: Run, points: Points, settings: Settings) -> list[float]:
    return [detector.limit_us(detector.Probes.of(run))]


def _false_suspicions(run: Run, points: Points, settings: Settings) -> list[float]:
    return [float(detector.false_suspicions(detector.Probes.of(run), detector.outages(run)))]


def _false_positive(run: Run, points: Points, settings: Settings) -> list[float]:
    probes = detector.Probes.of(run)
    return [detector.false_positive(probes, int(misses)) for misses in points or (1,)]


def _of_storage(value: Callable[[storage.PolicyResult], float]) -> Compute:
    """Returns a value of a storage client; points are durations of a switch."""

    def compute(run: Run, points: Points, settings: Settings) -> list[float]:
        policy = next((one for one in storage.POLICIES if one == settings.get("policy")), None)
        if policy is None:
            allowed = ", ".join(storage.POLICIES)
            raise PlanError(f"app.policy: expected one of {allowed}, got {settings.get('policy')}")
        threshold = _number(settings, "threshold-us")
        network, seed = storage.Network.of(run), int(run.manifest["seed"])
        host = storage.Host()
        if "service-us" in settings:
            host = replace(host, service_us=_number(settings, "service-us"))
        hosts = [replace(host, switch_us=switch) for switch in points] or [host]
        return [
            value(storage.simulate(policy, network, host, threshold_us=threshold, seed=seed))
            for host in hosts
        ]

    return compute


def _batch(run: Run, points: Points, settings: Settings) -> list[float]:
    """Returns the mean batch for each timeout."""
    arrivals = _arrivals(run, settings)
    return [reframer.mean_batch(arrivals, timeout) for timeout in points]


def _gaps_below(run: Run, points: Points, settings: Settings) -> list[float]:
    """Returns the share of gaps of at most each time."""
    gaps = reframer.gaps_us(_arrivals(run, settings))
    return [float((gaps <= limit).mean()) for limit in points]


def _arrivals(run: Run, settings: Settings) -> Arrivals:
    """Reads the arrivals at the first captured host, with the setting's random delays added."""
    hosts = run.manifest["plan"].get("run", {}).get("capture-hosts") or [0]
    arrivals = Arrivals.of(run, hosts[0])
    delay_us = _number(settings, "delay-us")
    if delay_us == 0.0:
        return arrivals
    return reframer.delayed(arrivals, delay_us, int(run.manifest["seed"]))


def _number(settings: Settings, key: str) -> float:
    """Returns a setting; zero if it is omitted."""
    value = settings.get(key, 0.0)
    if not isinstance(value, int | float):
        raise PlanError(f"app.{key}: expected a number, got {value}")
    return float(value)


OF_APPLICATIONS: dict[Metric, Compute] = {
    "detection-us": _detection_us,
    "detection-limit-us": _detection_limit_us,
    "false-suspicions": _false_suspicions,
    "false-positive": _false_positive,
    "tail-us": _of_storage(lambda outcome: outcome.tail_us),
    "spinner-share": _of_storage(lambda outcome: outcome.spinner_share),
    "kiops": _of_storage(lambda outcome: outcome.kiops),
    "batch": _batch,
    "gaps-below": _gaps_below,
}
"""The function that computes each metric of an application."""
