// The chart of a run over time: its phases, its flows as bars, drops, and an axis.

const PHASE = 17; // Pixels of a row of phases.
const AXIS = 20;

/** Returns the row of each flow: flows that overlap have different rows. */
function rowsOf(run, until) {
  const free = [];
  return run.flows.arrival.map((begin, idx) => {
    const end = Math.min(run.completions[idx], until);
    let row = free.findIndex((time) => time <= begin);
    if (row < 0) row = free.push(0) - 1;
    free[row] = end;
    return row;
  });
}

class ChartView {
  constructor(canvas, run, player) {
    Object.assign(this, { canvas, run, player });
    this.context = canvas.getContext("2d");
    this.rows = rowsOf(run, player.page.window[1]);
    this.tracks = [...run.tracks.keys()];
    this.top = this.tracks.length * PHASE + 6;
  }

  /** Sets the height, with at most `high` pixels for all flows. */
  layout(high) {
    const n = this.rows.reduce((most, row) => Math.max(most, row + 1), 1);
    this.pitch = Math.max(2, Math.min(12, high / n));
    this.height = this.top + n * this.pitch + AXIS;
    this.canvas.style.height = `${this.height}px`;
  }

  resize() {
    const { width, height } = this.canvas.getBoundingClientRect();
    this.scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(height * this.scale);
    this.size = [width, height];
  }

  x(time) {
    const [from, to] = this.player.page.window;
    return 8 + ((time - from) / (to - from)) * (this.size[0] - 16);
  }

  time(x) {
    const [from, to] = this.player.page.window;
    return from + ((x - 8) / (this.size[0] - 16)) * (to - from);
  }

  draw(time) {
    const { context } = this;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, ...this.size);
    this.drawPhases();
    this.drawFlows();
    this.drawDrops();
    this.drawAxis();
    context.fillStyle = this.player.colours.ink;
    context.fillRect(this.x(time) - 0.75, 0, 1.5, this.size[1] - AXIS + 4);
  }

  drawPhases() {
    const { context, player } = this;
    context.font = `10.5px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    this.tracks.forEach((track, row) => {
      const { names, start, until } = this.run.phasesOf(track, this.player.node);
      const top = row * PHASE + 3;
      names.forEach((name, idx) => {
        const left = Math.max(4, this.x(start[idx]));
        const wide = Math.min(this.size[0] - 4, this.x(until[idx])) - left;
        if (wide <= 0) return;
        context.globalAlpha = idx % 2 ? 0.5 : 0.95;
        context.fillStyle = player.colours.switch;
        context.fillRect(left, top, Math.max(1, wide - 1), PHASE - 3);
        context.globalAlpha = 1;
        const initials = name
          .replace(/[a-z]+/gi, (word) => word[0].toUpperCase())
          .replace(/[ ,]+/g, "");
        const text = [name, initials].find((one) => context.measureText(one).width < wide - 6);
        context.fillStyle = player.colours.ink;
        if (text) context.fillText(text, left + 3, top + (PHASE - 3) / 2 + 0.5);
      });
    });
  }

  drawFlows() {
    const { context, run, player } = this;
    const { flow, arrival, ideal } = run.flows;
    const [from, to] = player.page.window;
    const high = Math.max(1.5, this.pitch * 0.8);
    flow.forEach((number, idx) => {
      const left = this.x(Math.max(from, arrival[idx]));
      const right = this.x(Math.min(to, run.completions[idx]));
      const top = this.top + this.rows[idx] * this.pitch;
      const isDimmed = player.flow !== null && player.flow !== number;
      context.globalAlpha = isDimmed ? 0.2 : 0.85;
      const isByFlow = player.mode === "flow" || player.flow === number;
      context.fillStyle = isByFlow ? player.colours.flow(number) : player.colours.link;
      context.fillRect(left, top, Math.max(1.5, right - left), high);
      context.globalAlpha = isDimmed ? 0.3 : 1;
      const end = this.x(arrival[idx] + ideal[idx]);
      context.fillStyle = player.colours.paper;
      if (high > 2.5 && end < right) context.fillRect(end, top, 1.5, high);
    });
    context.globalAlpha = 1;
  }

  drawDrops() {
    const { context, run, player } = this;
    context.fillStyle = player.colours.drop;
    const top = this.size[1] - AXIS - 1;
    for (const at of run.drops.at) context.fillRect(this.x(at) - 0.5, top, 1, 5);
  }

  drawAxis() {
    const { context, player } = this;
    const [from, to] = player.page.window;
    const target = (to - from) / Math.max(2, this.size[0] / 90);
    const power = 10 ** Math.floor(Math.log10(target));
    const step = power * [1, 2, 5, 10].find((one) => one * power >= target);
    context.fillStyle = player.colours.soft;
    context.font = `10.5px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "bottom";
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = this.x(at), text = `${Number((at / 1e6).toPrecision(6))}`;
      const isLast = at + step > to;
      const isNarrow = isLast && x > this.size[0] - 34;
      context.textAlign = at === from ? "left" : isNarrow ? "right" : "center";
      context.fillRect(x, this.size[1] - AXIS + 1, 1, 3);
      context.fillText(isLast ? `${text} µs` : text, x, this.size[1] - 2);
    }
  }

  /** The flow at a point, or `null`. */
  at(x, y) {
    const row = Math.floor((y - this.top) / this.pitch);
    const time = this.time(x);
    const { flow, arrival } = this.run.flows;
    const has = (_, one) =>
      this.rows[one] === row && arrival[one] <= time && time <= this.run.completions[one];
    const idx = flow.findIndex(has);
    return idx < 0 ? null : flow[idx];
  }
}
