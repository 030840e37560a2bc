//! Random plans, drawn from a seed over the whole schema and every transport.

use rampmeter_exp::TransportInfo;
use rampmeter_proto::keys::KeyKind;
use rampmeter_types::{Purpose, Rng};
use toml::{Table, Value};

/// Largest numbers that are drawn for keys of `fabric`, if 100 000 is too few or too many.
const LARGEST: [(&str, f64); 10] = [
    ("buffer-bytes", 1e6),
    ("shared-buffer-bytes", 1e7),
    ("cut-through-bytes", 1e3),
    ("shaper-burst-us", 100.0),
    ("express-bytes", 1e4),
    ("buffer-cell-bytes", 1e4),
    ("trim-bytes", 200.0),
    ("header-ratio", 300.0),
    ("alpha", 2.0),
    ("ecn-max-probability", 1.0),
];

/// Draws the pieces of a plan. Keys of some tables are those of the schema's definitions.
struct Draw<'a>(Rng, &'a serde_json::Value);

impl Draw<'_> {
    fn chance(&mut self, p: f64) -> bool {
        self.0.bernoulli(p)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.uniform_below(choices.len())]
    }

    /// Returns a whole number from `least` to `most`, small and large ones alike.
    fn int(&mut self, least: u64, most: u64) -> i64 {
        let span = (most.min(i64::MAX as u64) - least) as f64;
        let drawn = least as f64 + (span + 1.0).powf(self.0.uniform_unit()) - 1.0;
        (drawn as u64).clamp(least, most) as i64
    }

    /// Returns a number from `least` to `most`, small and large ones alike.
    fn num(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least + 1.0).powf(self.0.uniform_unit()) - 1.0
    }

    /// Adds a key half of the time.
    fn maybe(&mut self, table: &mut Table, key: &str, draw: impl FnOnce(&mut Self) -> Value) {
        if self.chance(0.5) {
            let value = draw(self);
            table.insert(key.to_owned(), value);
        }
    }

    fn topology(&mut self) -> (Table, u64) {
        let mut table = Table::new();
        let (kind, hosts) = match self.0.uniform_below(6) {
            0 => {
                let hosts = self.int(2, 20);
                table.insert("hosts".into(), hosts.into());
                ("star", hosts)
            }
            1 => {
                let (racks, own, spines) = (self.int(1, 5), self.int(1, 5), self.int(1, 5));
                table.insert("racks".into(), racks.into());
                table.insert("hosts-per-rack".into(), own.into());
                table.insert("spines".into(), spines.into());
                ("leaf-spine", racks * own)
            }
            2 => {
                let k = self.pick(&[2, 4]);
                table.insert("k".into(), k.into());
                ("fat-tree", k * k * k / 4)
            }
            3 => {
                let side = self.int(1, 6);
                table.insert("hosts-per-side".into(), side.into());
                ("dumbbell", 2 * side)
            }
            4 => {
                let (switches, own, links) = (self.int(1, 3), self.int(1, 3), self.int(1, 2));
                table.insert("switches-per-group".into(), switches.into());
                table.insert("hosts-per-switch".into(), own.into());
                table.insert("global-links".into(), links.into());
                ("dragonfly", switches * own * (switches * links + 1))
            }
            _ => return self.graph(),
        };
        table.insert("kind".into(), kind.into());
        self.maybe(&mut table, "access-gbps", |d| d.pick(&[0.1, 1.0, 10.0, 25.0, 400.0]).into());
        if kind != "star" {
            self.maybe(&mut table, "core-gbps", |d| d.pick(&[0.1, 10.0, 100.0, 400.0]).into());
        }
        self.delays(&mut table, &["propagation-ns", "switch-ns", "host-ns"]);
        (table, hosts as u64)
    }

    /// Returns a pod, with cables that differ at times, or several pods.
    fn pod(&mut self) -> (Table, u64) {
        let mut table = Table::new();
        if self.chance(0.4) {
            let (k, pods) = self.pick(&[(4, 2), (4, 3), (4, 4), (6, 2)]);
            table.insert("kind".into(), "fat-tree".into());
            table.insert("k".into(), k.into());
            table.insert("pods".into(), pods.into());
            if self.chance(0.3) {
                let gbps = self.pick(&[1.0, 10.0, 400.0]);
                table.insert("access-gbps".into(), gbps.into());
                table.insert("core-gbps".into(), gbps.into());
            }
            self.delays(&mut table, &["propagation-ns", "switch-ns", "host-ns"]);
            return (table, (pods * k * k / 4) as u64);
        }
        let k = self.pick(&[4, 6, 8]);
        table.insert("kind".into(), "pod".into());
        table.insert("k".into(), k.into());
        self.maybe(&mut table, "gbps", |d| d.pick(&[0.1, 1.0, 10.0, 25.0, 400.0]).into());
        self.maybe(&mut table, "cable-spread-ns", |d| d.num(0.0, 1_000.0).into());
        self.delays(&mut table, &["propagation-ns", "switch-ns", "host-ns"]);
        (table, (k * k / 4) as u64)
    }

    /// Delays, all zero at times.
    fn delays(&mut self, table: &mut Table, keys: &[&str]) {
        let none = self.chance(0.1);
        for key in keys {
            if none {
                table.insert((*key).into(), 0.0.into());
            } else {
                self.maybe(table, key, |d| d.num(0.0, 50_000.0).into());
            }
        }
    }

    /// Returns the hosts and switches joined at random, mostly but not always into one piece.
    fn graph(&mut self) -> (Table, u64) {
        let (hosts, switches) = (self.int(2, 8), self.int(1, 4));
        let mut links = Vec::new();
        let mut link = |draw: &mut Self, a: String, b: String| {
            let mut table = Table::new();
            table.insert("between".into(), Value::Array(vec![a.into(), b.into()]));
            draw.maybe(&mut table, "gbps", |d| d.pick(&[1.0, 10.0, 40.0]).into());
            draw.maybe(&mut table, "propagation-ns", |d| d.num(0.0, 10_000.0).into());
            links.push(Value::Table(table));
        };
        for host in 0..hosts {
            let at = self.int(0, switches as u64 - 1);
            link(self, format!("h{host}"), format!("s{at}"));
        }
        for switch in 1..switches {
            for _ in 0..self.pick(&[1, 1, 1, 2, 0]) {
                let other = self.int(0, switch as u64 - 1);
                link(self, format!("s{switch}"), format!("s{other}"));
            }
        }
        let mut table = Table::new();
        table.insert("kind".into(), "links".into());
        table.insert("hosts".into(), hosts.into());
        table.insert("switches".into(), switches.into());
        table.insert("links".into(), Value::Array(links));
        self.delays(&mut table, &["switch-ns", "host-ns"]);
        (table, hosts as u64)
    }

    fn fabric(&mut self) -> Table {
        if self.chance(0.7) {
            return Table::new();
        }
        let (memory, trims) = (self.0.uniform_below(3), self.chance(0.1));
        let mut table = self.by_schema("FabricSpec", &|key| match key {
            "buffer-bytes" => memory == 0,
            "shared-buffer-bytes" => memory == 1,
            // Most transports refuse them.
            _ if key.starts_with("trim-") || key.starts_with("header-") => trims,
            _ => true,
        });
        if !table.contains_key("ecn-max-bytes") {
            table.remove("ecn-max-probability");
        }
        table
    }

    /// Returns a table of a definition of the schema, with half of the keys that are chosen by
    /// `may`.
    fn by_schema(&mut self, definition: &str, may: &dyn Fn(&str) -> bool) -> Table {
        let mut table = Table::new();
        let keys = self.1[definition]["properties"].as_object().expect("a table has keys");
        for (key, of) in keys.iter().filter(|(key, _)| may(key)) {
            let most = LARGEST.iter().find(|(name, _)| name == key).map_or(1e5, |&(_, most)| most);
            self.maybe(&mut table, key, |d| match (&of["type"], of["allOf"][0]["$ref"].as_str()) {
                (_, Some(path)) => d.by_definition(path.rsplit('/').next().unwrap(), most),
                (kind, None) if kind == "number" => d.num(0.0, most).into(),
                _ => d.int(0, most as u64).into(),
            });
        }
        table
    }

    /// Returns a value of a definition: a word of an enumeration, bytes of ports, or a table.
    fn by_definition(&mut self, name: &str, most: f64) -> Value {
        match self.1[name]["oneOf"].as_array() {
            Some(words) => {
                words[self.0.uniform_below(words.len())]["const"].as_str().unwrap().into()
            }
            None if name == "PortBytesSpec" => self.int(0, most as u64).into(),
            None => self.by_schema(name, &|_| true).into(),
        }
    }

    /// Returns the table of a transport, in half of the plans with keys that are not those of its
    /// preset.
    fn transport(&mut self, transport: &TransportInfo) -> Table {
        let mut table = Table::new();
        table.insert("name".into(), transport.name.into());
        if !transport.presets.is_empty() {
            let at = self.0.uniform_below(transport.presets.len());
            table.insert("preset".into(), transport.presets[at].0.into());
        }
        if self.chance(0.5) {
            // A sender that aborts after few attempts does so without a fault.
            for key in transport.keys.iter().filter(|key| key.name != "attempts-max") {
                if self.chance(0.15) {
                    table.insert(key.name.clone(), self.value(&key.kind));
                }
            }
        }
        if !transport.best_effort.is_empty() && self.chance(0.3) {
            let mut below = Table::new();
            below.insert("name".into(), self.pick(&transport.best_effort).into());
            table.insert("best-effort".into(), Value::Table(below));
        }
        table
    }

    fn value(&mut self, kind: &KeyKind) -> Value {
        match kind {
            KeyKind::Integer { min, max } => self.int(*min, *max).into(),
            KeyKind::Number { min, max } => self.num(*min, *max).into(),
            KeyKind::Bool => self.chance(0.5).into(),
            KeyKind::List { length, min, max } => {
                let mut items: Vec<i64> = (0..*length).map(|_| self.int(*min, *max)).collect();
                items.sort_unstable();
                Value::Array(items.into_iter().map(Value::from).collect())
            }
            KeyKind::Text | KeyKind::Table => {
                unreachable!("no transport of the repository has one")
            }
            KeyKind::Choice { names } => names[self.0.uniform_below(names.len())].0.clone().into(),
        }
    }

    fn sizes(&mut self) -> Value {
        match self.0.uniform_below(4) {
            0 => self.pick(&["imc10", "homa-w1", "homa-w2", "homa-w3"]).into(),
            _ => {
                let mut fixed = Table::new();
                fixed.insert("fixed".into(), self.int(1, 500_000).into());
                Value::Table(fixed)
            }
        }
    }

    fn workload(&mut self, hosts: u64, depth: u32) -> Table {
        let mut table = Table::new();
        let pattern = self.pick(&[
            "all-to-all",
            "all-to-all",
            "permutation",
            "rack-local",
            "incast-overlay",
            "incast",
            "outcast",
            "shuffle",
            "dense",
            "collective",
            "skewed-all-to-all",
            "bimodal",
            "mix",
        ]);
        let pattern = if depth > 0 && pattern == "mix" { "all-to-all" } else { pattern };
        table.insert("pattern".into(), pattern.into());
        let range = |d: &mut Self| {
            let mut range = Table::new();
            range.insert("first".into(), d.int(0, hosts).into());
            range.insert("count".into(), d.int(1, hosts).into());
            Value::Table(range)
        };
        match pattern {
            "all-to-all" | "permutation" | "incast-overlay" => {
                table.insert("sizes".into(), self.sizes());
                table.insert("load".into(), self.num(0.01, 1.2).into());
                if pattern == "incast-overlay" {
                    self.maybe(&mut table, "fan-in", |d| d.int(1, hosts).into());
                    self.maybe(&mut table, "incast-bytes", |d| d.int(1, 200_000).into());
                }
            }
            "rack-local" => {
                table.insert("sizes".into(), self.sizes());
                table.insert("local-load".into(), self.num(0.0, 1.0).into());
                table.insert("remote-load".into(), self.num(0.0, 1.0).into());
                self.maybe(&mut table, "hosts-per-rack", |d| d.int(1, hosts).into());
            }
            "incast" | "outcast" => self.fan(&mut table, hosts),
            "shuffle" => {
                table.insert("senders".into(), range(self));
                table.insert("receivers".into(), range(self));
                table.insert("flow-bytes".into(), self.int(1, 100_000).into());
            }
            "dense" => {
                table.insert("flow-bytes".into(), self.int(1, 50_000).into());
            }
            "collective" => {
                table.extend(self.collective());
                self.maybe(&mut table, "hosts", range);
                return table;
            }
            "bimodal" => self.bimodal(&mut table),
            "skewed-all-to-all" => {
                table.insert("host-bytes".into(), self.int(1, 1_000_000).into());
                table.insert("skew".into(), self.num(0.0, 2.0).into());
            }
            _ => {
                let parts = (0..self.int(1, 3)).map(|_| self.workload(hosts, 1).into());
                table.insert("parts".into(), Value::Array(parts.collect()));
            }
        }
        if depth == 0 && pattern != "mix" || depth > 0 {
            table.insert("flows".into(), self.int(1, 60).into());
        }
        table
    }

    fn bimodal(&mut self, table: &mut Table) {
        table.insert("sizes".into(), self.sizes());
        table.insert("load".into(), self.num(0.01, 1.2).into());
        table.insert("on-us".into(), self.num(0.1, 1_000.0).into());
        table.insert("off-us".into(), self.num(0.1, 1_000.0).into());
        self.maybe(table, "off-load", |d| d.num(0.0, 0.1).into());
        self.maybe(table, "period-distribution", |d| d.pick(&["exponential", "fixed"]).into());
    }

    fn fan(&mut self, table: &mut Table, hosts: u64) {
        table.insert("fan".into(), self.int(1, hosts).into());
        let key = self.pick(&["flow-bytes", "total-bytes"]);
        table.insert(key.into(), self.int(1, 500_000).into());
        self.maybe(table, "hub", |d| d.int(0, hosts).into());
        if self.chance(0.5) {
            table.insert("rounds".into(), self.int(1, 5).into());
            table.insert("period-us".into(), self.num(0.0, 1_000.0).into());
        }
    }

    fn collective(&mut self) -> Table {
        let mut table = Table::new();
        let operations = [
            ("all-reduce", "tree"),
            ("all-reduce", "halving-doubling"),
            ("all-gather", "ring"),
            ("reduce-scatter", "halving-doubling"),
            ("broadcast", "chain"),
            ("all-to-all", "direct"),
            ("all-to-all-v", "direct"),
            ("pipeline", "chain"),
        ];
        let (operation, algorithm) = self.pick(&operations);
        table.insert("operation".into(), operation.into());
        self.maybe(&mut table, "algorithm", |_| algorithm.into());
        table.insert("vector-bytes".into(), self.int(1, 1_000_000).into());
        if operation == "all-to-all-v" {
            table.insert("skew".into(), self.num(0.0, 2.0).into());
        }
        if self.chance(0.3) {
            table.insert("chunks".into(), self.int(1, 4).into());
        }
        if self.chance(0.3) {
            table.insert("rounds".into(), self.int(1, 3).into());
        }
        self.maybe(&mut table, "start-us", |d| d.num(0.0, 100.0).into());
        self.maybe(&mut table, "compute-us", |d| d.num(0.0, 100.0).into());
        self.maybe(&mut table, "pause-us", |d| d.num(0.0, 1_000.0).into());
        table
    }

    fn faults(&mut self, links: u64) -> Table {
        let mut table = Table::new();
        let rate = |d: &mut Self| Value::from(d.0.uniform_unit() * d.pick(&[0.01, 0.1, 1.0]));
        self.maybe(&mut table, "loss", rate);
        self.maybe(&mut table, "duplicate", rate);
        self.maybe(&mut table, "reorder", rate);
        self.maybe(&mut table, "delay-us", |d| d.num(0.0, 100.0).into());
        self.maybe(&mut table, "rerouting-us", |d| d.num(0.0, 2_000.0).into());
        self.maybe(&mut table, "outages", |d| {
            let outages = (0..d.int(1, 3)).map(|_| {
                let mut outage = Table::new();
                let target = d.pick(&["link", "switch", "arbiter"]);
                outage.insert(target.into(), d.int(0, links).into());
                let from = d.num(0.0, 1_000.0);
                outage.insert("from-us".into(), from.into());
                d.maybe(&mut outage, "until-us", |d| (from + d.num(0.0, 2_000.0)).into());
                Value::Table(outage)
            });
            Value::Array(outages.collect())
        });
        table
    }
}

/// Returns a plan of the `schema`, and whether it has faults.
pub(super) fn random_plan(
    seed: u64,
    transports: &[TransportInfo],
    schema: &serde_json::Value,
) -> (String, bool) {
    let mut draw = Draw(Rng::new(seed, 0, Purpose::Test), &schema["definitions"]);
    let mut plan = Table::new();
    plan.insert("seed".into(), draw.int(0, 1 << 40).into());
    // One in eight, drawn separately: other plans do not change.
    let (topology, hosts) = if seed % 8 == 7 { draw.pod() } else { draw.topology() };
    plan.insert("topology".into(), topology.into());
    plan.insert("fabric".into(), draw.fabric().into());
    let of = &transports[draw.0.uniform_below(transports.len())];
    plan.insert("transport".into(), draw.transport(of).into());
    plan.insert("workload".into(), draw.workload(hosts, 0).into());
    let mut run = Table::new();
    run.insert("drain-us".into(), draw.pick(&[0.0, 1_000.0, 100_000.0]).into());
    run.insert("sample-us".into(), draw.pick(&[0.0, 50.0, 1_000.0]).into());
    draw.maybe(&mut run, "paranoid", |d| d.chance(0.5).into());
    if seed % 4 == 1 && of.name != "ideal" {
        run.insert("rates-us".into(), 20.0.into());
    }
    plan.insert("run".into(), run.into());
    let has_faults = draw.chance(0.3);
    if has_faults {
        plan.insert("faults".into(), draw.faults(hosts + 2).into());
    }
    if draw.chance(0.2) {
        let mut clocks = Table::new();
        draw.maybe(&mut clocks, "offset-us", |d| d.num(0.0, 100.0).into());
        draw.maybe(&mut clocks, "drift-ppm", |d| d.num(0.0, 200.0).into());
        plan.insert("clocks".into(), clocks.into());
    }
    if draw.chance(0.1) {
        let mut deadlines = Table::new();
        deadlines.insert("mean-us".into(), draw.num(0.1, 1_000.0).into());
        plan.insert("deadlines".into(), deadlines.into());
    }
    if draw.chance(0.1) {
        let mut measure = Table::new();
        draw.maybe(&mut measure, "warmup-flows", |d| d.int(0, 100).into());
        draw.maybe(&mut measure, "completed-before-flow", |d| d.int(0, 100).into());
        plan.insert("measure".into(), measure.into());
    }
    (toml::to_string(&plan).unwrap(), has_faults)
}
