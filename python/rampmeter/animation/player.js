// The clock of the page, its controls, and the choice of a flow and of a node.

const SPEEDS = [1e4, 1e5, 1e6, 1e7, 1e8].flatMap((scale) => [scale, 2 * scale, 5 * scale]);
const SECONDS = 100; // Approximate length of the whole animation at the first speed.
const STILL_MS = 700; // Interval of the steps that replace motion.
const FLOWS_LISTED = 10; // Maximum number of flows in the legend.
const ZOOM_MAX = 12;
const LOW = 950; // Height of a window in which two rows of charts are half as high.
const FLOWS_HIGH = 80; // Maximum pixels of all flows in a chart.
const QUEUE_PACKETS = 10; // Minimum number of packets of a queue that is drawn at the full length.

const element = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function swatch(kind, colour = "") {
  const style = colour && `background:${colour};color:${colour}`;
  return make("span", { class: `swatch ${kind}`, style });
}

class Player {
  constructor(page) {
    this.page = page;
    this.runs = page.runs.map((run) => new Run(run, page));
    [this.start, this.end] = page.window;
    const unique = (lists) =>
      Float64Array.from(new Set([...lists.flat(), this.start, this.end])).sort();
    this.events = unique(this.runs.map((run) => run.events));
    this.milestones = unique(this.runs.map((run) => run.milestones));
    const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
    this.queueMax = most(page.runs.map((run) => most(run.queues.bytes)));
    this.gbpsMin = page.links.reduce((least, { gbps }) => Math.min(least, gbps), Infinity);
    const packetMax = most(page.runs.map((run) => most(run.packets.bytes)));
    this.queueScale = Math.max(this.queueMax, QUEUE_PACKETS * packetMax, 1);
    Object.assign(this, { time: this.start, flow: null, node: null, isPlaying: false });
    this.view = { zoom: 1, shift: [0, 0] };
    const wanted = (this.end - this.start) / SECONDS;
    const far = (speed) => Math.abs(Math.log(speed / wanted));
    this.speed = SPEEDS.reduce((best, one) => (far(one) < far(best) ? one : best));
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.colours = new Colours(page);
    this.mode = this.colours.flows.size <= this.colours.palette.length ? "flow" : "kind";
    this.panes = this.runs.map((run) => this.pane(run));
    this.fill();
    this.listen();
    this.followTheme();
  }

  /** Is dark as the system is, or as the page that embeds this one. */
  followTheme() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    let outer = null;
    try {
      if (parent !== window) outer = parent.document.body;
    } catch {
      // A page of another origin.
    }
    const update = () => {
      const theme = outer ? outer.dataset.theme : "";
      this.setTheme(theme === "dark" || (theme !== "light" && system.matches));
    };
    system.addEventListener("change", update);
    const wanted = { attributes: true, attributeFilter: ["data-theme"] };
    if (outer) new MutationObserver(update).observe(outer, wanted);
    update();
  }

  pane(run) {
    const name = `${run.label}: packets and queues in the network`;
    const net = make("canvas", { class: "net", role: "img", "aria-label": name });
    const flows = `${run.label}: flows over time; the list of flows has the same`;
    const chart = make("canvas", { class: "chart", role: "img", "aria-label": flows });
    const status = make("span", { class: "status" });
    const dot = make("i");
    const caption = make("figcaption", {}, dot, make("b", {}, run.label), status);
    element("panes").append(make("figure", {}, caption, net, chart));
    const views = { net: new NetworkView(net, run, this), chart: new ChartView(chart, run, this) };
    return { run, status, dot, ...views };
  }

  fill() {
    const hosts = this.page.nodes.filter((node) => node.kind === "host").length;
    const flows = [...this.colours.flows.keys()];
    const window = `${microseconds(this.start, 1)} to ${microseconds(this.end, 1)}`;
    element("about").textContent = `${hosts} hosts, ${flows.length} flows, ${window}`;
    for (const speed of SPEEDS) {
      const text = speed < 1e6 ? `${speed / 1e3} ns/s` : `${speed / 1e6} µs/s`;
      element("speed").append(make("option", { value: speed }, text));
    }
    element("speed").value = this.speed;
    element("colour").value = this.mode;
    const named = (flow) => this.runs.find((run) => run.rowOf.has(flow)).flowName(flow);
    for (const flow of flows) element("flow").append(make("option", { value: flow }, named(flow)));
    Object.assign(element("at"), { min: this.start, max: this.end });
  }

  legend() {
    const { colours, runs } = this;
    const list = element("legend");
    list.replaceChildren();
    const add = (...parts) => list.append(make("li", {}, ...parts));
    if (this.mode === "flow" && colours.flows.size <= FLOWS_LISTED) {
      for (const flow of colours.flows.keys()) {
        const { src, dst } = runs.find((run) => run.rowOf.has(flow)).hostsOf(flow);
        const parts = [swatch("", colours.flow(flow)), `${flow}: ${src} → ${dst}`];
        const state = { type: "button", "aria-pressed": flow === this.flow };
        const button = make("button", state, ...parts);
        button.addEventListener("click", () => this.choose(flow === this.flow ? null : flow));
        add(button);
      }
    } else if (this.mode === "flow") {
      add(swatch("", colours.palette[0]), "data in the colour of their flow");
    }
    if (this.mode === "flow") add(swatch("dot", colours.ink), "control");
    else {
      for (const [name, colour] of colours.classes) {
        const all = runs.flatMap((run) => run.kinds).filter((kind) => kind[1] === name);
        const kinds = [...new Set(all.map((kind) => kind[0]))];
        if (!kinds.length) continue;
        const others = kinds.filter((kind) => kind.toLowerCase() !== name);
        const listed = others.slice(0, 5).join(", ");
        add(swatch(name === "data" ? "" : "dot", colour), name + (listed ? ` (${listed})` : ""));
      }
    }
    const has = (bit) => runs.some((run) => run.packets.flags.some((flags) => flags & bit));
    if (has(TRIMMED)) add(swatch("hollow", ""), "trimmed");
    if (has(MARKED)) add(swatch("ring", ""), "marked");
    const cross = make("span", { class: "swatch cross" }, "✕");
    if (runs.some((run) => run.drops.at.length)) add(cross, "dropped");
    add(swatch("tick", ""), "ideal");
    add(`longest queue: ${bytesText(this.queueMax)}`);
  }

  listen() {
    const on = (id, act, name = "click") => element(id).addEventListener(name, act);
    on("play", () => this.toggle());
    on("back", () => this.step(-1));
    on("next", () => this.step(1));
    on("in", () => this.zoom(1.4));
    on("out", () => this.zoom(1 / 1.4));
    on("fit", () => this.zoom(0));
    on("close", () => this.choose(null));
    on("theme", () => this.setTheme(!this.colours.isDark));
    on("colour", (event) => this.setMode(event.target.value), "change");
    on("speed", (event) => this.setSpeed(Number(event.target.value)), "change");
    const numberOf = ({ target }) => (target.value === "" ? null : Number(target.value));
    on("flow", (event) => this.choose(numberOf(event)), "change");
    on("at", (event) => { this.pause(); this.seek(Number(event.target.value)); }, "input");
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.resize());
    for (const pane of this.panes) new Pointers(this, pane);
  }

  key(event) {
    const tag = event.target.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || tag === "SELECT") return;
    if (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY")) return;
    const flows = [...this.colours.flows.keys()];
    const next = this.flow === null ? 0 : (flows.indexOf(this.flow) + 1) % flows.length;
    const place = SPEEDS.indexOf(this.speed);
    const acts = {
      " ": () => this.toggle(),
      ArrowRight: () => this.step(1, event.shiftKey),
      ArrowLeft: () => this.step(-1, event.shiftKey),
      Home: () => this.stepTo(this.start),
      End: () => this.stepTo(this.end),
      ",": () => this.setSpeed(SPEEDS[Math.max(0, place - 1)]),
      ".": () => this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, place + 1)]),
      "+": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.zoom(0),
      f: () => flows.length && this.choose(flows[next]),
      Escape: () => this.choose(null),
      c: () => this.setMode(this.mode === "flow" ? "kind" : "flow"),
      d: () => this.setTheme(!this.colours.isDark),
    };
    const act = acts[event.key] || acts[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (this.isPlaying) return;
    if (this.time >= this.end) this.seek(this.start);
    this.isPlaying = true;
    this.showPlaying();
    element("event").textContent = "";
    if (this.still.matches) this.timer = setTimeout(() => this.stepStill(), STILL_MS);
    else this.frame(performance.now());
  }

  pause() {
    this.isPlaying = false;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frameId);
    this.showPlaying();
  }

  showPlaying() {
    document.body.classList.toggle("playing", this.isPlaying);
    element("play").setAttribute("aria-label", this.isPlaying ? "Pause" : "Play");
  }

  frame(before) {
    this.frameId = requestAnimationFrame((now) => {
      if (!this.isPlaying) return;
      const seconds = Math.min(100, Math.max(0, now - before)) / 1000;
      this.seek(this.time + seconds * this.speed);
      if (this.time >= this.end) this.pause();
      else this.frame(now);
    });
  }

  /** Shows one milestone after the other, without motion. */
  stepStill() {
    const after = this.milestones[firstAbove(this.milestones, this.time)];
    if (after === undefined) { this.pause(); return; }
    this.seek(after);
    this.timer = setTimeout(() => this.stepStill(), STILL_MS);
  }

  step(way, isFar = false) {
    const times = isFar ? this.milestones : this.events;
    const place = firstAbove(times, this.time);
    if (way > 0) this.stepTo(place < times.length ? times[place] : this.end);
    else this.stepTo(times[Math.max(0, times[place - 1] < this.time ? place - 1 : place - 2)]);
  }

  stepTo(time) {
    this.pause();
    this.seek(time);
    const prefix = (run) => (this.runs.length > 1 ? `${run.label}: ` : "");
    const sentences = this.runs
      .map((run) => [prefix(run), run.describe(time)])
      .filter(([, text]) => text)
      .map(([label, text]) => label + text);
    element("event").textContent = sentences.join(". ");
  }

  seek(time) {
    this.time = Math.min(this.end, Math.max(this.start, time));
    this.draw();
  }

  draw() {
    const text = microseconds(this.time);
    element("time").textContent = text;
    element("time").dataset.ps = this.time;
    element("at").value = this.time;
    element("at").setAttribute("aria-valuetext", text);
    for (const { run, status, net, chart } of this.panes) {
      const phases = run.phaseNames(this.time, this.node);
      status.textContent = [run.summary(this.time), ...phases].join(" · ");
      net.draw(this.time);
      chart.draw(this.time);
    }
  }

  setSpeed(speed) {
    this.speed = speed;
    element("speed").value = speed;
  }

  setMode(mode) {
    this.mode = mode;
    element("colour").value = mode;
    this.legend();
    this.draw();
  }

  setTheme(isDark) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    element("theme").textContent = isDark ? "Light" : "Dark";
    element("theme").setAttribute("aria-pressed", isDark);
    this.colours.update();
    for (const { run, dot } of this.panes) dot.style.background = this.colours.shade(run.colour);
    this.legend();
    this.resize();
    this.choose(this.flow);
  }

  /** Zooms by a factor about a point of the canvases, by default the middle; 0 shows all. */
  zoom(factor, about = null) {
    const [width, height] = this.panes[0].net.size;
    const { view } = this;
    const zoom = factor ? Math.min(ZOOM_MAX, Math.max(1, view.zoom * factor)) : 1;
    const offset = about ? [about[0] - width / 2, about[1] - height / 2] : [0, 0];
    const ratio = zoom / view.zoom;
    view.shift = view.shift.map((shift, axis) =>
      zoom === 1 ? 0 : offset[axis] + (shift - offset[axis]) * ratio);
    view.zoom = zoom;
    this.applyView();
  }

  move(x, y) {
    const { view } = this;
    const limits = this.panes[0].net.size.map((size) => (size * (view.zoom - 1)) / 2);
    view.shift = [x, y].map((change, axis) =>
      Math.min(limits[axis], Math.max(-limits[axis], view.shift[axis] + change)));
    this.applyView();
  }

  applyView() {
    for (const { net } of this.panes) {
      net.canvas.classList.toggle("moved", this.view.zoom > 1);
      net.resize(this.view);
    }
    this.draw();
  }

  /** Sets the columns and the height of the networks, so that all fit if they are legible. */
  resize() {
    const wide = innerWidth, n = this.panes.length;
    const columns = wide < 600 ? 1 : n === 4 || n === 2 ? 2 : Math.min(3, n);
    element("panes").style.setProperty("--columns", columns);
    const rows = Math.ceil(n / columns);
    const tall = (selector) => document.querySelector(selector).offsetHeight;
    const controls = tall("footer") - tall("#facts");
    const around = tall("header") + tall("#legend") + controls + 86 + rows * 38;
    const isLow = rows > 1 && innerHeight < LOW;
    for (const { chart } of this.panes) chart.layout(isLow ? FLOWS_HIGH / 2 : FLOWS_HIGH);
    const charts = Math.max(...this.panes.map(({ chart }) => chart.height)) * rows;
    const room = (innerHeight - around - charts) / rows;
    const high = Math.max(180, Math.min(wide / columns / 1.25, 560, room));
    for (const { net, chart } of this.panes) {
      net.canvas.style.height = `${wide < 600 ? 300 : high}px`;
      net.resize(this.view);
      chart.resize();
    }
    this.draw();
  }

  isEnd(run, name) {
    if (this.flow === null || !run.rowOf.has(this.flow)) return false;
    const { src, dst } = run.hostsOf(this.flow);
    return name === src || name === dst;
  }

  chooseNode(node) {
    const { name } = this.page.nodes[node];
    this.node = this.node === name ? null : name;
    this.draw();
  }

  /** Shows the facts of a flow in all runs. */
  choose(flow) {
    this.flow = flow;
    element("flow").value = flow === null ? "" : flow;
    this.legend();
    const body = make("tbody");
    element("table").replaceChildren();
    element("facts").hidden = flow === null;
    if (flow !== null) {
      const first = this.runs.find((run) => run.rowOf.has(flow));
      const size = first.flows.size[first.rowOf.get(flow)];
      const about = `${first.flowName(flow)}, ${bytesText(size)}`.replace("flow", "Flow");
      const caption = make("caption", {}, about);
      const names = ["Transport", "Completion", "Slowdown", "Ideal", "Arrival", "Status"];
      const cells = names.map((name) => make("th", { scope: "col" }, name));
      const head = make("thead", {}, make("tr", {}, ...cells));
      element("table").append(make("table", {}, caption, head, body));
      const having = this.runs.filter((run) => run.rowOf.has(flow));
      for (const run of having) body.append(...this.facts(run, run.rowOf.get(flow)));
    }
    this.draw();
  }

  facts(run, row) {
    const { flow, arrival, fct, ideal, status, is_bound: isBound } = run.flows;
    const time = (ps) => (ps === null ? "–" : microseconds(ps, 3));
    const cells = [
      run.label, time(fct[row]), fct[row] === null ? "–" : (fct[row] / ideal[row]).toFixed(2),
      (isBound[row] ? "≥ " : "") + time(ideal[row]), time(arrival[row]), status[row],
    ].map((text) => make("td", {}, text));
    cells[1].dataset.ps = fct[row];
    const rows = [make("tr", {}, ...cells)];
    const blame = run.blame[flow[row]];
    if (blame && blame.length) rows.push(this.blame(blame));
    return rows;
  }

  /** A bar of the causes of a completion time, and their list. */
  blame(causes) {
    const { palette } = this.colours;
    const total = causes.reduce((sum, one) => sum + one[1], 0) || 1;
    const bar = make("div", { class: "blame", "aria-hidden": "true" });
    const list = make("ul", { class: "causes" });
    causes.forEach(([cause, ps], idx) => {
      const colour = palette[idx % palette.length];
      bar.append(make("span", { style: `background:${colour};width:${(100 * ps) / total}%` }));
      list.append(make("li", {}, swatch("dot", colour), ` ${cause} ${microseconds(ps, 3)}`));
    });
    return make("tr", {}, make("td", { colspan: 6 }, bar, list));
  }
}

/** Pointers of a pane: drag and pinch, clicks on nodes, packets, flows and times. */
class Pointers {
  constructor(player, { net, chart, run }) {
    Object.assign(this, { player, net, chart, run, down: new Map(), moved: 0 });
    const at = (event) => [event.offsetX, event.offsetY];
    net.canvas.addEventListener("pointerdown", (event) => {
      this.moved = 0;
      this.down.set(event.pointerId, at(event));
    });
    net.canvas.addEventListener("pointermove", (event) => this.drag(event, at(event)));
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      net.canvas.addEventListener(name, (event) => this.down.delete(event.pointerId));
    }
    // Two fingers zoom, one scrolls the page.
    net.canvas.addEventListener("touchstart", (event) => {
      if (event.touches.length > 1) event.preventDefault();
    }, { passive: false });
    net.canvas.addEventListener("click", (event) => this.click(at(event)));
    net.canvas.addEventListener("dblclick", (event) => player.zoom(2, at(event)));
    net.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      player.zoom(Math.exp(-event.deltaY / 300), at(event));
    }, { passive: false });
    chart.canvas.addEventListener("click", (event) => {
      const flow = chart.at(...at(event));
      if (flow !== null) player.choose(flow);
      else player.stepTo(Math.round(chart.time(at(event)[0])));
    });
  }

  drag(event, to) {
    const from = this.down.get(event.pointerId);
    if (!from) return;
    const others = [...this.down].filter(([id]) => id !== event.pointerId).map((one) => one[1]);
    if (others.length) {
      const far = (point) => Math.hypot(point[0] - others[0][0], point[1] - others[0][1]) || 1;
      this.player.zoom(far(to) / far(from), others[0]);
    } else if (this.player.view.zoom > 1) {
      this.player.move(to[0] - from[0], to[1] - from[1]);
    }
    this.moved += Math.hypot(to[0] - from[0], to[1] - from[1]);
    this.down.set(event.pointerId, to);
  }

  click(at) {
    if (this.moved > 5) return;
    const { node, row } = this.net.at(...at, this.player.time);
    const flow = this.run.packets.flow[row] ?? -1;
    if (node !== undefined) this.player.chooseNode(node);
    else this.player.choose(flow >= 0 ? flow : null);
  }
}

/** Plays when the page is in view, unless its address has a time in microseconds (`#t=12.5`). */
async function begin() {
  const player = new Player(await unpack(element("data").textContent));
  window.animation = player;
  const wanted = /[#&]t=([\d.]+)/.exec(location.hash);
  if (wanted) player.stepTo(Math.round(Number(wanted[1]) * 1e6));
  else if (!player.still.matches) {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) player.pause();
      else if (player.time === player.start) player.play();
    });
    observer.observe(element("panes"));
  }
  document.body.dataset.ready = "true";
}

begin().catch((error) => {
  element("about").textContent = `This browser cannot play the page: ${error.message}`;
  throw error;
});
