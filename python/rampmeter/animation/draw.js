// The network of a run on a canvas: nodes, links, packets, queues and drops.

const LANE = 7; // Pixels between the two directions of a link.
const QUEUE = 8; // Width of the bar of a queue.
const DROP_SECONDS = 0.7; // Time of play for which a drop is shown.

function mix(hex, other, share) {
  const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const [a, b] = [parse(hex), parse(other)];
  const mixed = a.map((value, idx) => Math.round(value * (1 - share) + b[idx] * share));
  return `rgb(${mixed.join(",")})`;
}

const NAMES = ["ink", "soft", "link", "paper", "host", "switch", "edge", "drop", "focus"];

class Colours {
  constructor(page) {
    this.page = page;
    this.flows = new Map();
    const flows = new Set(page.runs.flatMap((run) => run.flows.flow));
    for (const flow of flows) this.flows.set(flow, this.flows.size);
    this.update();
  }

  /** Reads the colours of the theme; dark ones are lightened on dark paper. */
  update() {
    const style = getComputedStyle(document.documentElement);
    for (const name of NAMES) {
      this[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.isDark = document.documentElement.dataset.theme === "dark";
    const hues = this.page.colours.filter((hex) => hex !== "#000000");
    this.palette = hues.map((hex) => this.shade(hex));
    this.classes = new Map(this.page.classes.map(([name, hex]) => [name, this.shade(hex)]));
  }

  shade(hex) {
    if (!this.isDark) return hex;
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const light = (0.299 * r + 0.587 * g + 0.114 * b) / 255;
    return mix(hex, "#ffffff", light < 0.25 ? 0.5 : light < 0.5 ? 0.25 : 0);
  }

  flow(flow) {
    return this.palette[this.flows.get(flow) % this.palette.length] || this.soft;
  }
}

/** Places of nodes and links on a canvas of some size, with zoom and shift. */
class Geometry {
  constructor(page, width, height, view) {
    this.page = page;
    const below = page.shape === "rows" ? 30 : 34;
    const left = page.shape === "rows" ? 26 : Math.min(60, width / 11);
    const middle = [width / 2, height / 2];
    this.nodes = page.nodes.map(({ x, y }) => {
      const at = [left + x * (width - 2 * left), below + y * (height - 2 * below)];
      return at.map((value, axis) => {
        const far = (value - middle[axis]) * view.zoom;
        return middle[axis] + far + view.shift[axis];
      });
    });
    this.gap = this.spacing((node) => node.tier === 0);
    this.unit = Math.max(0.3, Math.min(1.5, this.gap / 46));
    const tiers = [...new Set(page.nodes.map((node) => node.tier))];
    const unitOf = (tier) => this.spacing((node) => node.tier === tier) / 46;
    const bounded = (unit) => Math.max(0.3, Math.min(1.2, unit));
    this.units = new Map(tiers.map((tier) => [tier, bounded(unitOf(tier))]));
    this.units.set(0, this.unit);
    if (page.shape === "circle") for (const tier of tiers) this.units.set(tier, this.unit);
    this.links = page.links.map((link) => this.link(link));
  }

  /** The least distance of two successive nodes of a kind. */
  spacing(isOfKind) {
    const places = this.nodes.filter((_, idx) => isOfKind(this.page.nodes[idx]));
    const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    const gaps = places.slice(1).map((place, idx) => far(place, places[idx]));
    return Math.min(90, ...gaps);
  }

  radius(node) {
    const { tier } = this.page.nodes[node];
    return (tier ? 17 : 14) * this.units.get(tier);
  }

  link({ from, to, lane }) {
    const [a, b] = [this.nodes[from], this.nodes[to]];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const along = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
    const across = [-along[1], along[0]];
    const aside = (lane + 0.5) * LANE * this.unit;
    const rise = this.isOver(from, to) ? Math.min(70, length / 4) : 0;
    const start = this.radius(from) + 2;
    const whole = Math.max(4, length - start - this.radius(to) - 2);
    return { a, along, across, aside, start, whole, rise };
  }

  /** True for a link in a row that leads past another node: it is drawn as an arc. */
  isOver(from, to) {
    const { nodes, shape } = this.page;
    const [a, b] = [nodes[from], nodes[to]];
    const isBetween = ({ tier, x }) => tier === a.tier && (x - a.x) * (x - b.x) < 0;
    return shape === "rows" && a.tier === b.tier && nodes.some(isBetween);
  }

  /** The point of a link at a share of its length, `out` pixels further from its middle. */
  point(link, share, out = 0) {
    const { a, along, across, aside, start, whole, rise } = this.links[link];
    const far = start + share * whole;
    const bow = 4 * share * (1 - share) * rise;
    const side = aside + out;
    const [x, y] = [0, 1].map((axis) => a[axis] + along[axis] * far + across[axis] * side);
    return [x, y - bow];
  }
}

class NetworkView {
  constructor(canvas, run, player) {
    Object.assign(this, { canvas, run, player });
    this.context = canvas.getContext("2d");
  }

  resize(view) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.geometry = new Geometry(this.player.page, width, height, view);
    this.size = [width, height];
    this.scale = scale;
  }

  draw(time) {
    const { context, geometry } = this;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, ...this.size);
    geometry.links.forEach((_, link) => this.drawLink(link));
    for (const [row, tail, head] of this.run.moving(time)) this.drawPacket(row, tail, head);
    geometry.nodes.forEach((_, node) => this.drawNode(node));
    geometry.links.forEach((_, link) => this.drawQueue(link, time));
    this.drawDrops(time);
  }

  stroke(points, width, colour) {
    const { context } = this;
    context.beginPath();
    points.forEach((point) => context.lineTo(...point));
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke();
  }

  part(link, from, to, out = 0) {
    const n = this.geometry.links[link].rise ? 10 : 1;
    const share = (idx) => from + ((to - from) * idx) / n;
    const { geometry } = this;
    return Array.from({ length: n + 1 }, (_, idx) => geometry.point(link, share(idx), out));
  }

  drawLink(link) {
    const { from, to, gbps } = this.player.page.links[link];
    if (this.run.isAbsent(from) || this.run.isAbsent(to)) return;
    // Four times the rate is twice the width.
    const width = Math.max(0.5, this.geometry.unit) * Math.sqrt(gbps / this.player.gbpsMin);
    this.stroke(this.part(link, 0, 1), Math.min(4, width), this.player.colours.link);
  }

  isDimmed(flow) {
    return this.player.flow !== null && flow !== this.player.flow;
  }

  colourOf(row) {
    const { packets, kinds } = this.run;
    const { colours, mode } = this.player;
    const name = kinds[packets.kind[row]][1];
    if (mode === "kind") return colours.classes.get(name);
    return name === "data" ? colours.flow(packets.flow[row]) : colours.ink;
  }

  drawPacket(row, tail, head) {
    const { context, geometry, run } = this;
    const { link, kind, flow, flags } = run.packets;
    const { unit } = geometry;
    const isData = run.kinds[kind[row]][1] === "data" && !(flags[row] & TRIMMED);
    const { whole } = geometry.links[link[row]];
    const middle = (tail + head) / 2;
    // Data have a gap of 2 pixels, control packets at least a dot.
    const half = isData
      ? Math.max(1.5 / whole, (head - tail) / 2 - Math.min(1 / whole, (head - tail) / 4))
      : Math.max((2.6 * Math.sqrt(unit)) / whole, (head - tail) / 2);
    const points = this.part(link[row], Math.max(0, middle - half), Math.min(1, middle + half));
    const width = (isData ? 5 : 4.4) * Math.max(0.6, unit);
    context.globalAlpha = this.isDimmed(flow[row]) ? 0.22 : 1;
    if (flags[row] & MARKED) this.stroke(points, width + 3, this.player.colours.ink);
    this.stroke(points, width, this.colourOf(row));
    if (flags[row] & TRIMMED) this.stroke(points, width - 2.2, this.player.colours.paper);
    context.globalAlpha = 1;
  }

  drawNode(node) {
    if (this.run.isAbsent(node)) return;
    const { context, geometry, player } = this;
    const { colours } = player;
    const { tier, name } = player.page.nodes[node];
    const [x, y] = geometry.nodes[node];
    const radius = geometry.radius(node);
    const [wide, high] = tier ? [radius * 2.1, radius * 1.5] : [radius * 1.9, radius * 1.4];
    context.beginPath();
    context.roundRect(x - wide / 2, y - high / 2, wide, high, radius / 3);
    context.fillStyle = tier ? colours.switch : colours.host;
    context.fill();
    const isEnd = player.isEnd(this.run, name);
    const isChosen = player.node === name;
    const edge = isChosen ? colours.focus : colours.edge;
    context.lineWidth = isEnd || isChosen ? 2 : 1;
    context.strokeStyle = isEnd ? colours.flow(player.flow) : edge;
    context.stroke();
    const size = Math.min(12, 11 * geometry.units.get(tier));
    const text = name.length > 6 ? `${name.slice(0, 5)}…` : name;
    if (size >= 7) this.text(text, x, y, colours.ink, size);
    else if (!tier && player.page.shape === "rows" && node % Math.ceil(22 / geometry.gap) === 0) {
      this.text(text, x, y + high / 2 + 8, colours.soft, 9.5);
    }
  }

  font(size) {
    return `${size}px system-ui, "DejaVu Sans", sans-serif`;
  }

  text(text, x, y, colour, size, align = "center") {
    const { context } = this;
    context.font = this.font(size);
    context.textAlign = align;
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = this.player.colours.paper;
    if (align !== "center") context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  drawQueue(link, time) {
    const { context, geometry, run, player } = this;
    const bytes = run.queue(link, time);
    const drops = run.dropped(link, time);
    if (!bytes && !drops) return;
    const { unit, links } = geometry;
    const { whole } = links[link];
    const width = QUEUE * Math.max(0.5, unit);
    const out = (LANE * unit + width) / 2 + 1;
    const long = 0.78 * (bytes / player.queueScale);
    const size = Math.max(10, Math.min(12, 11 * unit));
    if (bytes) {
      const shares = this.shares(link, time);
      let from = 0;
      for (const [colour, share, isDimmed] of shares) {
        context.globalAlpha = isDimmed ? 0.25 : 0.9;
        this.stroke(this.part(link, from, from + share * long, out), width, colour);
        from += share * long;
      }
      context.globalAlpha = 1;
      const end = Math.max(long, 2 / whole);
      this.stroke(this.part(link, end, end + 1.5 / whole, out), width + 2, player.colours.ink);
    }
    if (!drops && long < 0.08) return;
    const beyond = Math.max(long, drops ? 0.16 : 0) + (size * 1.1) / whole;
    const [x, y] = geometry.point(link, beyond, out + width);
    const isLeft = links[link].across[0] < -0.3;
    const parts = [];
    if (long >= 0.08) parts.push([bytesText(bytes), player.colours.ink]);
    if (drops) parts.push([`✕${drops}`, player.colours.drop]);
    this.labels(isLeft ? parts.reverse() : parts, x, y, size, isLeft);
  }

  /** Draws texts in a row, within the canvas. */
  labels(parts, x, y, size, isLeft) {
    const { context } = this;
    context.font = this.font(size);
    const widths = parts.map(([text]) => context.measureText(text).width + 5);
    const whole = widths.reduce((sum, width) => sum + width, 0);
    let place = isLeft ? Math.max(x, whole) : Math.min(x, this.size[0] - whole);
    parts.forEach(([text, colour], idx) => {
      this.text(text, place, y, colour, size, isLeft ? "right" : "left");
      place += widths[idx] * (isLeft ? -1 : 1);
    });
  }

  /** The parts of a queue by colour: [colour, share, is dimmed], in the order of flows. */
  shares(link, time) {
    const { run, player } = this;
    const { bytes, flow } = run.packets;
    const rows = run.waiting(link, time);
    const total = rows.reduce((sum, row) => sum + bytes[row], 0);
    const found = new Map();
    const order = (row) => player.colours.flows.get(flow[row]) ?? -1;
    for (const row of rows.sort((a, b) => order(a) - order(b))) {
      const colour = this.colourOf(row), isDimmed = this.isDimmed(flow[row]);
      const part = found.get(colour + isDimmed) || [colour, 0, isDimmed];
      part[1] += bytes[row] / total;
      found.set(colour + isDimmed, part);
    }
    return found.size ? [...found.values()] : [[player.colours.soft, 1, false]];
  }

  drawDrops(time) {
    const { context, geometry, run, player } = this;
    const { at, link } = run.drops;
    const until = firstAbove(at, time);
    const length = DROP_SECONDS * player.speed;
    for (let row = firstAbove(at, time - length); row < until; row += 1) {
      const age = (time - at[row]) / length;
      const [x, y] = geometry.point(link[row], 0.05, 18 * geometry.unit + 26 * age);
      const arm = 4.5 * Math.max(0.6, geometry.unit);
      context.globalAlpha = 1 - age;
      this.stroke([[x - arm, y - arm], [x + arm, y + arm]], 2.4, player.colours.drop);
      this.stroke([[x - arm, y + arm], [x + arm, y - arm]], 2.4, player.colours.drop);
    }
    context.globalAlpha = 1;
  }

  /** The node or the packet at a point. */
  at(x, y, time) {
    const near = (point) => Math.hypot(point[0] - x, point[1] - y);
    const { geometry, run } = this;
    const node = geometry.nodes.findIndex((point, idx) => near(point) < geometry.radius(idx));
    if (node >= 0) return { node };
    const isNear = (row) => (share) => near(geometry.point(run.packets.link[row], share)) < 7;
    const found = run.moving(time).find(([row, tail, head]) =>
      [tail, (tail + head) / 2, head].some(isNear(row)));
    return found ? { row: found[0] } : {};
  }
}
