"""Metrics of applications, computed from finished runs."""

from collections.abc import Callable
from dataclasses import replace

from rampmeter.apps import detector, reframer, storage
from rampmeter.apps.capture import Arrivals
from rampmeter.on_demand import np
from rampmeter.papers.metrics.spec import Metric, MetricSpec, Points, Settings
from rampmeter.results.run import Run
from rampmeter.text.locations import Location


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


def _of_storage(
    value: Callable[[storage.PolicyResult], float],
) -> Callable[[Run, Points, Settings], list[float]]:
    """Returns a value of a storage client; points are durations of a switch."""

    def compute(run: Run, points: Points, settings: Settings) -> list[float]:
        policy = next((one for one in storage.POLICIES if one == settings.get("policy")), None)
        if policy is None:
            allowed = ", ".join(storage.POLICIES)
            raise Location(key="app.policy").error(
                expected=f"one of {allowed}", got=settings.get("policy")
            )
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
        raise Location(key=f"app.{key}").error(expected="a number", got=value)
    return float(value)


_STORAGE = "`app` has `policy`, `threshold-us`, `service-us`; points are times of a switch in us"
_DELAYED = "`app` has `delay-us`"

APPLICATIONS: dict[Metric, MetricSpec] = {
    "detection-us": MetricSpec(
        "Maximum time to detection (µs)",
        "longest time from a crash to its detection, in us",
        of_application=_detection_us,
    ),
    "detection-limit-us": MetricSpec(
        "Limit of the time to detection (µs)",
        "limit that cosy promises for that time, in us",
        of_application=_detection_limit_us,
    ),
    "false-suspicions": MetricSpec(
        "False suspicions",
        "suspicions of hosts that are up",
        of_application=_false_suspicions,
    ),
    "false-positive": MetricSpec(
        "Probability of a false positive",
        "at points: probability of N unanswered probes in a row",
        of_application=_false_positive,
    ),
    "tail-us": MetricSpec(
        "Read latency, p99.9 (µs)",
        f"99.9th percentile of the latency of reads, in us; {_STORAGE}",
        of_application=_of_storage(lambda outcome: outcome.tail_us),
    ),
    "spinner-share": MetricSpec(
        "Spinner's throughput (of alone)",
        f"progress of a spinner next to a client, over that alone; {_STORAGE}",
        of_application=_of_storage(lambda outcome: outcome.spinner_share),
    ),
    "kiops": MetricSpec(
        "Reads (thousands per second)",
        f"reads of the client, in thousands per second; {_STORAGE}",
        of_application=_of_storage(lambda outcome: outcome.kiops),
    ),
    "batch": MetricSpec(
        "Packets per batch",
        f"at points, which are timeouts in us: mean batch; {_DELAYED}",
        of_application=_batch,
    ),
    "gaps-below": MetricSpec(
        "Fraction of times",
        f"at points in us: share of times between packets of at most that; {_DELAYED}",
        of_application=_gaps_below,
    ),
}
