"""Pages of animations in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rampmeter as rm
from rampmeter.animation import page
from rampmeter.results import animations
from rampmeter.results.pictures import timeline_of
from rampmeter.timeline import PORT, QUEUE

from .browser import PHONE, errors, has_no_sideways_scroll, run_script, until
from .commands import ok
from .conftest import ROOT

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PLAN = ROOT / "examples/plans/incast8.toml"
FLOW = 3
"""A flow that the tests choose."""
LABELS = {"TCP": "tcp", "dcPIM": "dcpim"}
SIDE = tuple(LABELS.values())
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a comparison by an incast at a star of eight hosts."""
    out = tmp_path_factory.mktemp("incast") / "compared"
    ok("compare", PLAN, "--transports", ",".join(SIDE), "--out", out, "--quiet")
    return out


@pytest.fixture(scope="module")
def file(compared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page of two transports, of which the first has causes of a completion time."""
    runs = {label: rm.Run(compared / name) for label, name in LABELS.items()}
    of = page._run
    blamed = {FLOW: [("queueing", 3_000_000), ("retransmission", 1_000_000)]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "_run", lambda run: {**of(run), "blame": blamed})
        path = tmp_path_factory.mktemp("page") / "page.html"
        return animations.animate(runs).save(path)


@pytest.fixture
def opened(browser: "Chrome", file: Path) -> Iterator["Chrome"]:
    """Opens the page at its start."""
    browser.set_window_size(1280, 900)
    yield open_at(browser, file, "#t=0")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def open_at(browser: "Chrome", file: Path, place: str = "") -> "Chrome":
    browser.get("about:blank")
    browser.get(file.as_uri() + place)
    until(lambda: run_script(browser, "return document.body.dataset.ready;"))
    return browser


def emulate(browser: "Chrome", name: str, value: str) -> None:
    features = [{"name": name, "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def press(browser: "Chrome", key: str, *, shift: bool = False) -> None:
    """Presses a key with the focus on the page."""
    script = """
    document.activeElement.blur();
    document.body.dispatchEvent(new KeyboardEvent("keydown",
      { key: arguments[0], shiftKey: arguments[1], bubbles: true, cancelable: true }));
    """
    run_script(browser, script, key, shift)


def click(browser: "Chrome", name: str) -> None:
    run_script(browser, "document.getElementById(arguments[0]).click();", name)


def shown_ps(browser: "Chrome") -> float:
    return float(run_script(browser, "return document.getElementById('time').dataset.ps;"))


def text_of(browser: "Chrome", name: str) -> str:
    return str(run_script(browser, "return document.getElementById(arguments[0]).innerText;", name))


def event_times(compared: Path) -> list[int]:
    """Returns the times at which something begins, is dropped, arrives or completes."""
    found = set()
    for name in SIDE:
        run = rm.Run(compared / name)
        timeline = timeline_of(run)
        found |= {one.at for track in timeline.links for one in track.slices}
        ports = timeline.of_role(PORT)
        found |= {one.at for track in ports for one in track.instants}
        for track in (*timeline.named("matching"), *timeline.named("data phase")):
            found |= {one.at for one in track.slices}
        for row in run.flows.to_pylist():
            found |= {row["arrival_ps"], row["arrival_ps"] + row["fct_ps"]}
    return sorted(found)


def test_steps_lead_to_the_next_event_of_the_data(opened: "Chrome", compared: Path) -> None:
    times = event_times(compared)
    assert shown_ps(opened) == times[0] == 0
    for at in times[1:60]:
        press(opened, "ArrowRight")
        assert shown_ps(opened) == at
        assert text_of(opened, "time").replace("\u2009", "") == f"{at / 1e6:.6f} µs"
        assert text_of(opened, "event")
    for at in reversed(times[40:59]):
        click(opened, "back")
        assert shown_ps(opened) == at
    run_script(opened, "animation.stepTo(arguments[0]);", times[500] + 0.5)
    click(opened, "next")
    assert shown_ps(opened) == times[501]
    assert errors(opened) == []


def test_far_steps_lead_to_flows_phases_and_drops(opened: "Chrome", compared: Path) -> None:
    press(opened, "ArrowRight", shift=True)
    (track, *_) = timeline_of(rm.Run(compared / "dcpim")).named("matching")
    assert shown_ps(opened) == track.slices[1].at
    assert "grant 1 begins" in text_of(opened, "event")
    (drops,) = timeline_of(rm.Run(compared / "tcp")).of_role(PORT)
    run_script(opened, "animation.seek(arguments[0]);", drops.instants[0].at - 1)
    press(opened, "ArrowRight", shift=True)
    assert shown_ps(opened) == drops.instants[0].at
    assert "is dropped at s0 → h0 (buffer)" in text_of(opened, "event")
    press(opened, "End")
    assert "7 of 7 complete" in text_of(opened, "panes")
    assert f"{len(drops.instants)} dropped" in text_of(opened, "panes")
    press(opened, "Home")
    assert shown_ps(opened) == 0


def test_the_page_plays_by_itself_and_pauses(opened: "Chrome", file: Path) -> None:
    open_at(opened, file)
    until(lambda: shown_ps(opened) > 0)
    label = "return document.getElementById('play').getAttribute('aria-label');"
    assert run_script(opened, label) == "Pause"
    press(opened, " ")
    paused = shown_ps(opened)
    assert run_script(opened, label) == "Play"
    run_script(opened, "return new Promise((resolve) => setTimeout(resolve, 300));")
    assert shown_ps(opened) == paused
    click(opened, "play")
    until(lambda: shown_ps(opened) > paused)
    press(opened, ".")
    assert run_script(opened, "return animation.speed;") == 2_000_000
    assert errors(opened) == []


STATE = """
const [name, time] = arguments;
animation.seek(time);
const run = animation.runs.find((one) => one.label === name);
const links = animation.page.links;
return {
  moving: run.moving(time).map(([row, tail, head]) =>
    [links[run.packets.link[row]].name, run.packets.start[row], tail, head]),
  queues: Object.fromEntries(links.map(({ name }, link) => [name, run.queue(link, time)])),
  waiting: Object.fromEntries(links.map(({ name }, link) =>
    [name, run.waiting(link, time).reduce((sum, row) => sum + run.packets.bytes[row], 0)])),
};
"""


@pytest.mark.parametrize("at", [1_234_567, 16_400_000, 31_000_123, 60_000_000])
def test_places_of_packets_and_queues_are_exact(opened: "Chrome", compared: Path, at: int) -> None:
    for label, name in LABELS.items():
        timeline = timeline_of(rm.Run(compared / name))
        state = run_script(opened, STATE, label, at)
        delay = 200_000
        expected = [
            [track.name, one.at, max(0, at - one.until) / delay, min(1, (at - one.at) / delay)]
            for track in timeline.links
            for one in track.slices
            if one.at <= at < one.until + delay
        ]
        assert sorted(state["moving"]) == sorted(expected)
        for track in timeline.of_role(QUEUE):
            port = track.name.removesuffix(" queue")
            values = [one.value for one in track.values if one.at <= at]
            assert state["queues"][port] == (values[-1] if values else 0)
            # The parts of a bar are those of the packets in the queue.
            assert state["waiting"][port] == state["queues"][port]


def test_a_click_on_a_flow_shows_its_completion_time(opened: "Chrome", compared: Path) -> None:
    script = """
    const { chart } = animation.panes[0];
    const row = chart.run.rowOf.get(arguments[0]);
    const box = chart.canvas.getBoundingClientRect();
    const y = chart.top + (chart.rows[row] + 0.4) * chart.pitch;
    chart.canvas.scrollIntoView({ block: "center" });
    return [chart.x(chart.run.completions[row] / 2) - box.width / 2, y - box.height / 2];
    """
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    x, y = run_script(opened, script, FLOW)
    canvas = opened.find_element(By.CSS_SELECTOR, "canvas.chart")
    ActionChains(opened).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    rows = run_script(
        opened,
        "return [...document.querySelectorAll('#table tbody tr')].filter((one) =>"
        " one.cells.length > 1).map((one) => [one.cells[0].innerText,"
        " Number(one.cells[1].dataset.ps), one.cells[2].innerText]);",
    )
    expected = []
    for label, name in LABELS.items():
        row = next(r for r in rm.Run(compared / name).flows.to_pylist() if r["flow"] == FLOW)
        expected.append([label, row["fct_ps"], f"{row['fct_ps'] / row['ideal_ps']:.2f}"])
    assert rows == expected
    assert text_of(opened, "table").startswith("Flow 3 (h3 → h0), 150 kB")
    widths = "return [...document.querySelectorAll('.blame')[0].children].map((o) => o.style.width)"
    assert run_script(opened, widths) == ["75%", "25%"]
    assert "queueing 3.000 µs" in text_of(opened, "table")
    press(opened, "Escape")
    assert text_of(opened, "table") == ""
    assert errors(opened) == []


def test_both_sides_have_the_same_flows_at_the_same_time(opened: "Chrome") -> None:
    flows = "return animation.runs.map((run) => run.flows.flow.map((flow) => run.flowName(flow)));"
    one, other = run_script(opened, flows)
    assert one == other
    captions = "return [...document.querySelectorAll('figcaption b')].map((o) => o.innerText);"
    assert run_script(opened, captions) == ["TCP", "dcPIM"]
    tops = "return [...document.querySelectorAll('figure')].map((o) => o.offsetTop);"
    assert len(set(run_script(opened, tops))) == 1


def test_keys_and_buttons_zoom_choose_and_colour(opened: "Chrome") -> None:
    zoom = "return [animation.view.zoom, ...animation.view.shift];"
    press(opened, "+")
    assert run_script(opened, zoom)[0] == pytest.approx(1.4)
    run_script(opened, "animation.move(30, -20);")
    assert run_script(opened, zoom)[1:] == [30, -20]
    click(opened, "fit")
    assert run_script(opened, zoom) == [1, 0, 0]
    press(opened, "f")
    assert run_script(opened, "return animation.flow;") == 0
    pressed = "return document.querySelectorAll('#legend [aria-pressed=true]').length;"
    assert run_script(opened, pressed) == 1
    press(opened, "c")
    assert "permission (grant, accept, token)" in text_of(opened, "legend")
    assert run_script(opened, "return document.getElementById('colour').value;") == "kind"
    named = "return [...document.querySelectorAll('button, select, input, canvas')].filter((o) =>"
    named += " !(o.getAttribute('aria-label') || o.innerText || o.closest('label'))).length;"
    assert run_script(opened, named) == 0
    assert errors(opened) == []


TOUCH = """
const box = animation.panes[0].net.canvas.getBoundingClientRect();
return [box.left + box.width / 2, box.top + box.height / 2];
"""


def test_labels_of_queues_are_in_the_narrowest_network(
    browser: "Chrome", compared: Path, tmp_path: Path
) -> None:
    browser.set_window_size(1200, 900)
    runs = {f"{label} {n}": rm.Run(compared / LABELS[label]) for n in (1, 2) for label in LABELS}
    file = animations.animate(dict(list(runs.items())[:3])).save(tmp_path / "three.html")
    open_at(browser, file, "#t=40")
    ends = run_script(browser, LABEL_ENDS)
    width = ends.pop()
    assert any("✕" in text for text, _, _ in ends)
    assert [text for text, left, right in ends if left < 0 or right > width] == []


LABEL_ENDS = """
const { net } = animation.panes[0], ends = [];
net.text = (text, x, y, colour, size, align) => {
  net.context.font = net.font(size);
  const width = net.context.measureText(text).width;
  if (align === "left") ends.push([text, x, x + width]);
  if (align === "right") ends.push([text, x - width, x]);
};
net.draw(40e6);
return [...ends, net.size[0]];
"""


def test_two_fingers_zoom_all_networks(opened: "Chrome") -> None:
    x, y = run_script(opened, TOUCH)

    def touch(kind: str, *shifts: int) -> None:
        points = [
            {"x": x + shift, "y": y + shift / 2, "id": idx} for idx, shift in enumerate(shifts)
        ]
        opened.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20, 20)
    for far in (30, 40, 50, 60):
        touch("touchMove", -far, far)
    touch("touchEnd")
    zoom = until(lambda: run_script(opened, "return animation.view.zoom;"))
    assert zoom == pytest.approx(3, rel=0.2)
    assert errors(opened) == []


def test_a_click_on_a_node_or_a_packet_chooses_it(opened: "Chrome") -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    canvas = opened.find_element(By.CSS_SELECTOR, "canvas.net")

    def click_at(script: str) -> None:
        x, y = run_script(
            opened,
            "const { net } = animation.panes[0]; const [width, height] = net.size;"
            f"const [x, y] = {script}; return [x - width / 2, y - height / 2];",
        )
        move = ActionChains(opened).move_to_element_with_offset(canvas, round(x), round(y))
        move.click().perform()

    click_at("net.geometry.nodes[2]")
    assert run_script(opened, "return animation.node;") == "h2"
    run_script(opened, "animation.seek(20e6);")
    moving = "net.run.moving(20e6).find(([row]) => net.run.packets.flow[row] >= 0)"
    place = "net.geometry.point(net.run.packets.link[row], (tail + head) / 2)"
    click_at(f"(([row, tail, head]) => {place})({moving})")
    flow = run_script(
        opened,
        f"const {{ net }} = animation.panes[0]; const [row] = {moving};"
        "return [animation.flow, net.run.packets.flow[row]];",
    )
    assert flow[0] == flow[1] is not None


def test_dark_and_narrow_pages_do_not_scroll_sideways(opened: "Chrome", file: Path) -> None:
    emulate(opened, "prefers-color-scheme", "dark")
    open_at(opened, file, "#t=17")
    ink = "return getComputedStyle(document.body).backgroundColor;"
    dark = run_script(opened, ink)
    click(opened, "theme")
    assert run_script(opened, ink) != dark
    press(opened, "d")
    assert run_script(opened, ink) == dark
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    open_at(opened, file, "#t=17")
    run_script(opened, "animation.choose(arguments[0]);", FLOW)
    until(lambda: has_no_sideways_scroll(opened))
    footer = "return document.querySelector('footer').getBoundingClientRect().bottom;"
    assert run_script(opened, footer) <= PHONE["height"] + 0.5
    assert errors(opened) == []


def test_an_embedded_page_has_the_theme_of_the_outer_one(
    opened: "Chrome", compared: Path, tmp_path: Path
) -> None:
    frame = rm.Run(compared / "dcpim").animate()._repr_html_()
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!doctype html><body data-theme='dark'>{frame}</body>", encoding="utf-8")
    opened.get(outer.as_uri())
    inner = "document.querySelector('iframe').contentDocument"
    until(lambda: run_script(opened, f"return {inner}.body.dataset.ready;"))
    theme = f"return {inner}.documentElement.dataset.theme;"
    assert run_script(opened, theme) == "dark"
    run_script(opened, "document.body.dataset.theme = 'light';")
    until(lambda: run_script(opened, theme) == "light")
    assert errors(opened) == []


def test_reduced_motion_steps_and_does_not_start_by_itself(
    opened: "Chrome", file: Path, compared: Path
) -> None:
    emulate(opened, "prefers-reduced-motion", "reduce")
    open_at(opened, file)
    run_script(opened, "return new Promise((resolve) => setTimeout(resolve, 400));")
    assert shown_ps(opened) == 0
    (track, *_) = timeline_of(rm.Run(compared / "dcpim")).named("matching")
    click(opened, "play")
    seen = {until(lambda: shown_ps(opened)), until(lambda: shown_ps(opened))}
    assert seen <= {one.at for one in track.slices}
    click(opened, "play")
