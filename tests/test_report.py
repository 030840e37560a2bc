"""Reports: their contents, and their behaviour in a browser."""

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rampmeter as rm
from rampmeter import ResultError
from rampmeter.plots.colours import UNDECIDED, looks
from rampmeter.report import find, model, page
from rampmeter.report.charts import figure_json

from .browser import PHONE, errors, has_no_sideways_scroll, run_script, until
from .commands import call, ok
from .conftest import SMALL

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PLAN = """\
[topology]
kind = "star"
hosts = 8
[transport]
name = "dcpim"
[workload]
pattern = "all-to-all"
sizes = "web-search"
load = 0.5
flows = 300
"""

VARIED = ["--vary", "workload.load=0.3,0.5", "--vary", "topology.hosts=4,8"]


def command(*arguments: str | Path) -> str:
    """Returns the output of a command, which has to succeed."""
    return ok(*arguments).output


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run, a comparison, two sweeps and two figures."""
    folder = tmp_path_factory.mktemp("results")
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    both = ("--transports", "dcpim,phost", "--seeds", "2", "--quiet")
    command("run", plan, "--quiet", "--out", folder / "one")
    command("compare", plan, *both, "--out", folder / "beside")
    command("sweep", plan, "--vary", "workload.load=0.3,0.5", *both, "--out", folder / "loads")
    command("sweep", plan, *VARIED, *both, "--out", folder / "grid")
    figures = folder / "papers"
    command("papers", "cosy", "2", "--quiet", "--out", figures / "cosy2")
    figure = ("papers", "phost", "3", "--scale", "0.002", "--seeds", "2", "--quiet")
    command(*figure, "--out", figures / "phost3")
    _judge(figures / "phost3" / "report.json")
    return folder


def _judge(file: Path) -> None:
    """Turns verdicts of too few flows into ones that a report of the full number may have."""
    report = json.loads(file.read_text())
    for panel in report["sub_figures"]:
        for row in panel["rows"]:
            if row["expected"] is not None and row["difference"] is not None:
                is_match = abs(row["difference"]) <= row["tolerance"]["value"]
                row |= {"verdict": "match" if is_match else "miss", "reason": ""}
    file.write_text(json.dumps(report))


@pytest.fixture(scope="module")
def report(results: Path) -> Path:
    file = results / "report.html"
    assert "6 sections" in command("report", results, "--out", file)
    return file


def test_a_report_is_one_file_that_needs_no_other(report: Path) -> None:
    text = report.read_text()
    assert report.stat().st_size < 15_000_000
    # The library mentions addresses; nothing is loaded from any.
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"([^\"]{1,60})", text)
    assert all(address.startswith("data:") for address in loaded), loaded
    assert not list(report.parent.glob("*.partial"))


def test_links_lead_to_files(report: Path) -> None:
    text = report.read_text()
    text = text[text.index("<main>") : text.index("</main>")]
    targets = set(re.findall(r"<a href=\"([^\"#][^\"]*)\"", text))
    assert len(targets) > 10
    for target in targets:
        assert (report.parent / target).is_file(), target
    places = set(re.findall(r"<a href=\"#([^\"]*)\"", text))
    for place in places:
        assert f'id="{place}"' in text, place


def test_every_published_value_is_in_the_table(results: Path) -> None:
    (section,) = find([results / "papers" / "phost3"], results)
    rows = json.loads((results / "papers/phost3/report.json").read_text())["sub_figures"]
    published = [row for panel in rows for row in panel["rows"] if row["expected"] is not None]
    assert len(section.rows) == len(published) > 10
    for line, row in zip(section.rows, published, strict=True):
        assert (line[4], line[5], line[11]) == (row["metric"], row["expected"], row["verdict"])
    charts = [part for part in section.parts if isinstance(part, model.Chart)]
    shown = [y for chart in charts for one in chart.series if one.kind == "expected" for y in one.y]
    assert sorted(shown) == sorted(row["expected"] for row in published)


def test_values_of_recorded_runs_are_not_called_published(results: Path, tmp_path: Path) -> None:
    report = json.loads((results / "papers/phost3/report.json").read_text())
    rows = [row for panel in report["sub_figures"] for row in panel["rows"]]
    recorded = [row for row in rows if row["expected"] is not None][:3]
    for row in recorded:
        row |= {"is_recorded": True, "published_flows": 5_000}
    (tmp_path / "phost3").mkdir()
    (tmp_path / "phost3/report.json").write_text(json.dumps(report))
    (section,) = find([tmp_path / "phost3"], tmp_path)
    sources = [line[6] for line in section.rows]
    assert sources.count("recorded, 5 000 flows") == 3
    assert set(sources) == {"recorded, 5 000 flows", "published"}
    charts = [part for part in section.parts if isinstance(part, model.Chart)]
    names = {one.name.rpartition(", ")[2] for chart in charts for one in chart.series}
    assert {"recorded", "published"} <= names


def test_the_report_counts_verdicts_as_the_command_does(results: Path, tmp_path: Path) -> None:
    arguments = ["papers", "phost", "3", "--scale", "0.0005", "--quiet"]
    printed = command(*arguments, "--out", tmp_path / "phost3")
    (section,) = find([tmp_path / "phost3"], tmp_path)
    assert section.verdicts is not None
    counts = section.verdicts
    shown = f"{counts.match} match, {counts.miss} miss, {counts.fewer_flows} fewer flows"
    assert f"verdicts: {shown}, {counts.not_judged} not judged" in printed


def test_fewer_flows_is_a_separate_verdict(report: Path, results: Path) -> None:
    (section,) = find([results / "papers" / "phost3"], results)
    verdicts = json.loads((results / "papers/phost3/report.json").read_text())["verdicts"]
    assert section.verdicts is not None
    assert 0 < section.verdicts.fewer_flows < verdicts["fewer flows"]
    shown = f'<span class="verdict-fewer-flows">{section.verdicts.fewer_flows} fewer flows</span>'
    assert shown in report.read_text()


def test_intervals_are_those_of_the_seeds(results: Path) -> None:
    (section,) = find([results / "loads"], results)
    charts = [part for part in section.parts if isinstance(part, model.Chart)]
    assert (charts[0].title, charts[0].x_label) == ("Mean slowdown", "Load")
    (dcpim, phost) = charts[0].series
    assert (dcpim.name, phost.name) == ("dcPIM", "pHost")
    assert (dcpim.colour, phost.colour) == (looks(["dcpim"])[0].idx, looks(["phost"])[0].idx)
    assert list(dcpim.x) == [0.3, 0.5]
    assert all(low < y < high for low, y, high in zip(dcpim.low, dcpim.y, dcpim.high, strict=True))
    (differences,) = (
        part
        for part in section.parts
        if isinstance(part, model.DataTable) and "differences" in part.title
    )
    assert [row[1] for row in differences.rows] == ["phost - dcpim"] * 2
    for row, one, other in zip(differences.rows, dcpim.y, phost.y, strict=True):
        assert row[2] == pytest.approx(other - one)


def test_logarithmic_axes_have_the_whole_number_at_each_tick() -> None:
    series = model.Series("a", [1.0, 2.0], [1.5, 120.0])
    axis = json.loads(figure_json(model.Chart("t", "x", "y", [series], "y")))["layout"]["yaxis"]
    assert axis["ticktext"][:7] == ["1", "2", "5", "10", "20", "50", "100"]
    assert axis["tickvals"][:4] == [1.0, 2.0, 5.0, 10.0]


def test_heat_maps_of_a_measure_have_one_scale_of_colours(results: Path) -> None:
    (section,) = find([results / "grid"], results)
    maps = [part for part in section.parts if isinstance(part, model.HeatMap)]
    by_measure: dict[str, set[tuple[float, float]]] = {}
    for part in maps:
        by_measure.setdefault(part.unit, set()).add((part.low, part.high))
    assert all(len(ends) == 1 for ends in by_measure.values())
    figure = json.loads(figure_json(maps[0]))["data"][0]
    assert (figure["zmin"], figure["zmax"]) == (maps[0].low, maps[0].high)


def test_points_without_a_verdict_are_grey_and_in_the_legend(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results / "papers" / "phost3", tmp_path / "fig3")
    file = tmp_path / "fig3" / "report.json"
    judged = json.loads(file.read_text())

    def grey_points(verdict: str) -> list[str]:
        for panel in judged["sub_figures"]:
            for row in panel["rows"]:
                row["verdict"] = verdict if row["expected"] is not None else "not judged"
        file.write_text(json.dumps(judged))
        (section,) = find([file.parent], tmp_path)
        charts = [part for part in section.parts if isinstance(part, model.Chart)]
        traces = [trace for part in charts for trace in json.loads(figure_json(part))["data"]]
        grey = [trace for trace in traces if trace["name"] == "no verdict yet"]
        assert all(trace["marker"]["color"] == UNDECIDED for trace in grey)
        return [x for trace in grey for x in trace["x"]]

    assert grey_points("match") == []
    n_expected = sum(
        row["expected"] is not None and row["measured"] is not None
        for panel in judged["sub_figures"]
        for row in panel["rows"]
    )
    assert len(grey_points("fewer flows")) == n_expected > 0


def test_values_that_are_no_numbers_are_omitted() -> None:
    nan, infinite = float("nan"), float("inf")
    series = model.Series("a </script>", [1.0, 2.0], [nan, infinite], [nan, nan], [nan, nan])
    text = figure_json(model.Chart("t", "x", "y", [series]))
    figure = json.loads(text)
    assert "</script>" not in text
    assert figure["data"][0]["y"] == [None, None]
    assert "error_y" not in figure["data"][0]


def test_text_of_results_is_shown_and_not_run() -> None:
    evil = "<script>alert(1)</script>"
    grid = model.DataTable(evil, [model.Column(evil)], [[evil]])
    parts: list[model.SectionPart] = [
        grid,
        model.MarkdownText(evil),
        model.SvgImage(evil, f"<svg>{evil}</svg>"),
    ]
    text = page.html([model.Section("s0", evil, evil, parts, group=evil)], evil)
    assert evil not in text


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, "nowhere: expected a folder of results, got none"),
        ("", "expected results of a figure, comparison, sweep or run"),
        ('{"paper": "dcpim", "figure": "3", "version": "0.0.9"}', "rampmeter papers dcpim 3"),
        ("not JSON", "expected JSON"),
    ],
)
def test_folders_without_results_are_explained(
    tmp_path: Path, made: str | None, message: str
) -> None:
    folder = tmp_path / "nowhere"
    if made is not None:
        folder.mkdir()
    if made:
        (folder / "report.json").write_text(made)
    with pytest.raises(ResultError, match=re.escape(message)):
        find([folder], tmp_path)
    result = call("report", folder, "--out", tmp_path / "a.html")
    assert (result.exit_code, (tmp_path / "a.html").exists()) == (2, False)


@pytest.fixture
def open_page(browser: "Chrome", report: Path) -> "Chrome":
    browser.set_window_size(1280, 1000)
    browser.get(report.as_uri())
    return browser


def column(browser: "Chrome", table: str, idx: int) -> list[str]:
    """Returns the texts of a column's visible cells."""
    script = """
    const rows = [...document.getElementById(arguments[0]).tBodies[0].rows];
    return rows.filter((row) => !row.hidden).map((row) => row.cells[arguments[1]].textContent);
    """
    texts: list[str] = run_script(browser, script, table, idx)
    return texts


SCROLL_THROUGH = """
document.querySelectorAll("details").forEach((one) => { one.open = true; });
document.querySelectorAll(".chart")[arguments[0]].scrollIntoView();
return document.querySelectorAll(".chart").length;
"""


@pytest.mark.long
def test_every_chart_is_drawn_and_the_console_is_empty(open_page: "Chrome") -> None:
    n_charts = run_script(open_page, SCROLL_THROUGH, 0)
    assert n_charts > 12
    is_drawn = (
        "return document.querySelectorAll('.chart')[arguments[0]].querySelector('.main-svg');"
    )
    for idx in range(n_charts):
        run_script(open_page, SCROLL_THROUGH, idx)
        until(partial(run_script, open_page, is_drawn, idx))
    points = run_script(open_page, "return document.querySelectorAll('.point').length;")
    assert points > 50
    assert errors(open_page) == []


@pytest.mark.long
def test_headings_sort_and_the_field_searches(open_page: "Chrome") -> None:
    from selenium.webdriver.common.by import By

    before = column(open_page, "all-values", 5)
    heading = open_page.find_elements(By.CSS_SELECTOR, "#all-values th button")[5]
    heading.click()
    ascending = column(open_page, "all-values", 5)
    assert [float(text) for text in ascending] == sorted(float(text) for text in before)
    heading.click()
    descending = [float(text) for text in column(open_page, "all-values", 5)]
    assert descending == sorted(descending, reverse=True)
    # Signs and missing values too.
    open_page.find_elements(By.CSS_SELECTOR, "#all-values th button")[8].click()
    shown = [float(t.removesuffix(" %")) for t in column(open_page, "all-values", 8) if t != "-"]
    assert shown == sorted(shown)
    field = open_page.find_element(By.CSS_SELECTOR, "#summary .tools input")
    field.send_keys("miss p99")
    verdicts, metrics = (column(open_page, "all-values", idx) for idx in (11, 4))
    assert (set(verdicts), set(metrics)) == ({"miss"}, {"p99"})
    summary = open_page.find_element(By.CSS_SELECTOR, "#summary .found").text
    assert summary == f"{len(verdicts)} found"
    field.clear()
    field.send_keys("nothing has this")
    assert column(open_page, "all-values", 0) == []
    assert errors(open_page) == []


@pytest.mark.long
def test_a_point_shows_its_values(open_page: "Chrome") -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    run_script(open_page, SCROLL_THROUGH, 0)
    point = until(lambda: open_page.find_elements(By.CSS_SELECTOR, ".chart .point"))[0]
    ActionChains(open_page).move_to_element(point).perform()
    hover = until(lambda: open_page.find_elements(By.CSS_SELECTOR, ".hoverlayer .hovertext"))
    assert re.search(r"\d\.\d", hover[0].text)


@pytest.mark.long
def test_colours_follow_the_button(open_page: "Chrome") -> None:
    from selenium.webdriver.common.by import By

    run_script(open_page, SCROLL_THROUGH, 0)
    until(lambda: open_page.find_elements(By.CSS_SELECTOR, ".chart .xtick text"))
    ink = (
        "return [getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.chart .xtick text')).fill];"
    )
    before = run_script(open_page, ink)
    run_script(open_page, "scrollTo(0, 0);")
    open_page.find_element(By.ID, "theme").click()
    until(lambda: run_script(open_page, ink)[1] != before[1])
    after = run_script(open_page, ink)
    assert all(one != other for one, other in zip(before, after, strict=True))
    open_page.find_element(By.ID, "theme").click()
    until(lambda: run_script(open_page, ink) == before)


@pytest.mark.long
def test_a_phone_shows_all_without_scrolling_sideways(open_page: "Chrome") -> None:
    open_page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        run_script(open_page, SCROLL_THROUGH, 0)
        until(lambda: has_no_sideways_scroll(open_page))
    finally:
        open_page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.long
def test_the_printed_report_has_all_charts(open_page: "Chrome") -> None:
    n_charts = run_script(open_page, "return document.querySelectorAll('.chart').length;")
    pdf = open_page.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"]
    assert len(pdf) > 100_000
    drawn = "return document.querySelectorAll('.chart .main-svg .cartesianlayer').length;"
    assert run_script(open_page, drawn) == n_charts
    assert errors(open_page) == []


@pytest.fixture(scope="module")
def causes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the report of a comparison with causes, and with a wide table of fabrics."""
    out = tmp_path_factory.mktemp("causes")
    plan = rm.Plan(SMALL).with_(("run", {"blame": True}))
    rm.compare(plan, "dcpim,homa,ndp", out=out / "compared", quiet=True).save(out / "compared")
    command("report", out, "--out", out / "report.html")
    return out / "report.html"


PAPER = {**PHONE, "width": 717}
"""The width of A4 without the margins of the browser, in pixels."""


@pytest.mark.long
def test_printed_tables_and_drawings_fit_the_paper(browser: "Chrome", causes: Path) -> None:
    browser.get(causes.as_uri())
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PAPER)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        ends = "return [...document.querySelectorAll('table, .drawing img')]"
        ends += ".map((one) => one.getBoundingClientRect().right);"
        until(lambda: max(run_script(browser, ends)) <= PAPER["width"])
        assert len(run_script(browser, ends)) > 10
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.long
def test_drawings_are_readable_on_a_phone_and_dark_on_dark_pages(
    browser: "Chrome", causes: Path
) -> None:
    browser.get(causes.as_uri())
    width = "const image = document.querySelector('.drawing img'); return image.width"
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        until(lambda: run_script(browser, f"{width} === image.naturalWidth;"))
        assert has_no_sideways_scroll(browser)
        style = "return getComputedStyle(document.querySelector('.drawing')).filter;"
        light = run_script(browser, style)
        run_script(browser, "document.getElementById('theme').click();")
        assert {light, run_script(browser, style)} == {"none", "invert(0.92) hue-rotate(180deg)"}
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def warnings_in(page: Path) -> list[str]:
    return re.findall(r"<li><strong>Warning:</strong> (.*?)</li>", page.read_text(), re.DOTALL)


def test_reports_list_each_distinct_warning_once_with_its_runs(here: Path) -> None:
    plan = rm.Plan(SMALL).with_(("workload.flows", 60))
    for seed in (1, 2):
        rm.run(plan, seed=seed, out=f"runs/run{seed}", quiet=True)
    rm.compare(plan, "dcpim,tcp", seeds=2, out="compared", quiet=True)
    for folder, concerned in (
        ("runs", "(2 of 2 runs: run1; run2"),
        ("compared", "(4 of 4 runs of 2 transports: dcpim; tcp"),
    ):
        ok("report", folder, "--out", f"{folder}.html")
        warnings = warnings_in(here / f"{folder}.html")
        few = [one for one in warnings if "are too few for an interval" in one]
        assert len(few) == 1, warnings
        assert concerned in few[0]
        assert len({one.partition(" (")[0] for one in warnings}) == len(warnings)
