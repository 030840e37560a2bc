"use strict";
// The columns of the page, and the state of a run at a time. Times are in picoseconds.

const MARKED = 1, TRIMMED = 2;
const SERVED_MAX = 1500; // Packets of a queue that are coloured.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function sums(differences) {
  let total = 0;
  return Float64Array.from(differences, (value) => (total += value));
}

/** Returns the place of the first of sorted values that is above `value`. */
function firstAbove(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Places of the rows of each link, in their order. */
function byLink(links, n) {
  const rows = Array.from({ length: n }, () => []);
  links.forEach((link, row) => rows[link].push(row));
  return rows;
}

function microseconds(ps, digits = 6) {
  const [whole, rest] = (ps / 1e6).toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return `${grouped}${rest ? `.${rest}` : ""} µs`;
}

function bytesText(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toPrecision(3)} kB` : `${(bytes / 1e6).toPrecision(3)} MB`;
}

class Run {
  constructor(raw, page) {
    const { links, nodes, window } = page;
    Object.assign(this, raw);
    this.page = page;
    const start = sums(raw.packets.start);
    this.packets = { ...raw.packets, start, packet: sums(raw.packets.packet) };
    const { length, link } = this.packets;
    this.ends = start.map((at, row) => at + length[row]);
    const spanOf = (row) => length[row] + links[link[row]].ps;
    this.span = start.reduce((most, _, row) => Math.max(most, spanOf(row)), 0);
    this.rows = byLink(link, links.length);
    this.starts = this.rows.map((rows) => Float64Array.from(rows, (row) => start[row]));
    this.entered = this.entries(nodes, links);
    for (const name of ["drops", "marks"]) this[name] = { ...raw[name], at: sums(raw[name].at) };
    this.dropsAt = byLink(this.drops.link, links.length)
      .map((rows) => Float64Array.from(rows, (row) => this.drops.at[row]));
    const at = sums(raw.queues.at);
    this.queues = byLink(raw.queues.link, links.length).map((rows) => ({
      at: Float64Array.from(rows, (row) => at[row]),
      bytes: rows.map((row) => raw.queues.bytes[row]),
    }));
    this.phases = raw.phases.map((one) => ({ ...one, start: sums(one.start) }));
    const ofTrack = (track) => this.phases.filter((one) => one.track === track);
    this.tracks = new Map(this.phases.map(({ track }) => [track, ofTrack(track)]));
    this.used = new Set(link.flatMap((one) => [links[one].from, links[one].to]));
    const { arrival, fct } = this.flows;
    const isComplete = (idx) => fct[idx] !== null;
    this.completions = arrival.map((at, idx) => (isComplete(idx) ? at + fct[idx] : Infinity));
    this.sorted = Float64Array.from(this.completions).sort();
    this.rowOf = new Map(this.flows.flow.map((flow, idx) => [flow, idx]));
    const isInside = (time) => time >= window[0] && time <= window[1];
    const of = [arrival, this.completions, this.drops.at, ...this.phases.map((one) => one.start)];
    this.milestones = of.flatMap((times) => [...times]).filter(isInside);
    this.events = [...start, ...this.marks.at].filter(isInside).concat(this.milestones);
  }

  /** Times at which packets entered the queues of their ports: arrivals, and the switch's delay. */
  entries(nodes, links) {
    const { start, link, packet } = this.packets;
    const last = new Map(), delays = new Map();
    const arrivals = start.map((_, row) => {
      const before = packet[row] ? last.get(packet[row]) : undefined;
      if (packet[row]) last.set(packet[row], row);
      return before === undefined ? start[row] : this.ends[before] + links[link[before]].ps;
    });
    const tierOf = (row) => nodes[links[link[row]].from].tier;
    arrivals.forEach((at, row) => {
      const delay = start[row] - at;
      const tier = tierOf(row);
      if (tier && delay > 0 && !(delays.get(tier) <= delay)) delays.set(tier, delay);
    });
    return arrivals.map((at, row) => Math.min(start[row], at + (delays.get(tierOf(row)) || 0)));
  }

  /** Rows of the packets on links, as [row, tail, head] with shares of the link's length. */
  moving(time) {
    const { start, link } = this.packets;
    const found = [];
    const until = firstAbove(start, time);
    for (let row = firstAbove(start, time - this.span - 1); row < until; row += 1) {
      const delay = this.page.links[link[row]].ps || 1;
      const tail = (time - this.ends[row]) / delay;
      if (tail < 1) found.push([row, Math.max(0, tail), Math.min(1, (time - start[row]) / delay)]);
    }
    return found;
  }

  queue(link, time) {
    const { at, bytes } = this.queues[link];
    const place = firstAbove(at, time) - 1;
    return place < 0 ? 0 : bytes[place];
  }

  /** Rows of the packets in a queue, in the order of service. */
  waiting(link, time) {
    const found = [];
    const rows = this.rows[link];
    const first = firstAbove(this.starts[link], time);
    for (let place = first; place < rows.length && place < first + SERVED_MAX; place += 1) {
      if (this.entered[rows[place]] <= time) found.push(rows[place]);
    }
    return found;
  }

  dropped(link, time) {
    return firstAbove(this.dropsAt[link], time);
  }

  /** The phases at a time, a text for each track; those of a node, or of the first one. */
  phaseNames(time, node) {
    return [...this.tracks.keys()].flatMap((track) => {
      const { names, start, until } = this.phasesOf(track, node);
      const place = firstAbove(start, time) - 1;
      return place >= 0 && until[place] > time ? [names[place]] : [];
    });
  }

  phasesOf(track, node) {
    const all = this.tracks.get(track);
    return all.find((one) => one.nodes.includes(node)) || all[0];
  }

  /** True for an arbiter of another transport. */
  isAbsent(node) {
    return this.page.nodes[node].kind === "arbiter" && !this.used.has(node);
  }

  summary(time) {
    const drops = firstAbove(this.drops.at, time), marks = firstAbove(this.marks.at, time);
    const complete = firstAbove(this.sorted, time);
    const parts = [`${complete} of ${this.flows.flow.length} complete`];
    if (this.drops.at.length) parts.push(`${drops} dropped`);
    if (this.marks.at.length) parts.push(`${marks} marked`);
    return parts.join(" · ");
  }

  /** The names of the hosts of a flow. */
  hostsOf(flow) {
    const row = this.rowOf.get(flow);
    const { hosts } = this.page;
    return { src: hosts[this.flows.src[row]], dst: hosts[this.flows.dst[row]] };
  }

  flowName(flow) {
    if (!this.rowOf.has(flow)) return `flow ${flow}`;
    const { src, dst } = this.hostsOf(flow);
    return `flow ${flow} (${src} → ${dst})`;
  }

  /** Sentences of the events at exactly this time. */
  describe(time, limit = 3) {
    const { packets, page } = this;
    const found = [];
    const linkName = (link) => {
      const { name, from } = page.links[link];
      const source = page.nodes[from].name;
      return `${source} → ${name.slice(source.length + 1)}`;
    };
    const { arrival, flow } = this.flows;
    flow.forEach((number, row) => {
      if (arrival[row] === time) found.push(`${this.flowName(number)} arrives`);
      if (this.completions[row] === time) found.push(`${this.flowName(number)} completes`);
    });
    for (const phases of this.phases) {
      const place = phases.start.indexOf(time);
      if (place >= 0) found.push(`${phases.names[place]} begins`);
    }
    const { drops, marks } = this;
    for (let row = firstAbove(drops.at, time - 1); drops.at[row] === time; row += 1) {
      const kind = this.kinds[drops.kind[row]][0];
      const place = `${linkName(drops.link[row])} (${drops.reason[row]})`;
      found.push(`${kind} of ${this.flowName(drops.flow[row])} is dropped at ${place}`);
    }
    for (let row = firstAbove(marks.at, time - 1); marks.at[row] === time; row += 1) {
      const flow = this.flowName(marks.flow[row]);
      found.push(`a packet of ${flow} is marked at ${linkName(marks.link[row])}`);
    }
    for (let row = firstAbove(packets.start, time - 1); packets.start[row] === time; row += 1) {
      found.push(`${this.packetName(row)} starts on ${linkName(packets.link[row])}`);
    }
    const more = found.length - limit;
    return found.slice(0, limit).join("; ") + (more > 0 ? `; and ${more} more` : "");
  }

  packetName(row) {
    const { kind, flow, flags } = this.packets;
    const trimmed = flags[row] & TRIMMED ? "trimmed " : "";
    const marked = flags[row] & MARKED ? "marked " : "";
    const of = flow[row] < 0 ? "" : ` of ${this.flowName(flow[row])}`;
    return trimmed + marked + this.kinds[kind[row]][0] + of;
  }
}
