//! The `faults` table: losses, delays and duplicates of links, and failures.

use rampmeter_sim::{FaultSpec, LinkChange, LinkFault, Outage, Target, Topology};
use rampmeter_types::{Rate, Span, Time};

use super::context::PlanOrigin;
use super::tables::{FaultsSpec, LinkChangeSpec, LinkFaultSpec, LinkName, OutageSpec};
use crate::error::PlanError;
use crate::topology::names::NamesSpec;

/// Checks the table against the topology.
pub(crate) fn faults(
    spec: &FaultsSpec,
    topology: &Topology,
    names: &NamesSpec,
    cx: &PlanOrigin<'_>,
) -> Result<FaultSpec, PlanError> {
    let check = FaultChecker { topology, names, cx };
    let every = LinkFaultSpec {
        link: LinkName::Number(0),
        loss: spec.loss,
        duplicate: spec.duplicate,
        reorder: spec.reorder,
        delay_us: spec.delay_us,
    };
    let mut links = Vec::new();
    for (i, fault) in spec.links.iter().enumerate() {
        let path = format!("faults.links[{i}]");
        links.push((check.link(&format!("{path}.link"), &fault.link)?, check.fault(&path, fault)?));
    }
    let mut outages = Vec::new();
    for (i, outage) in spec.outages.iter().enumerate() {
        outages.extend(check.repeated(i, outage, check.outage(i, outage)?)?);
    }
    let changes = spec.changes.iter().enumerate().map(|(i, change)| check.change(i, change));
    let changes: Vec<LinkChange> = changes.collect::<Result<_, _>>()?;
    check.contradictions(&changes, &links)?;
    Ok(FaultSpec {
        changes,
        every_link: check.fault("faults", &every)?,
        links,
        outages,
        rerouting: cx.micros("faults.rerouting-us", spec.rerouting_us, 0.0)?,
    })
}

/// Parts of the plan against which the table is checked.
struct FaultChecker<'a, 'b> {
    topology: &'a Topology,
    names: &'a NamesSpec,
    cx: &'a PlanOrigin<'b>,
}

impl FaultChecker<'_, '_> {
    fn fault(&self, path: &str, spec: &LinkFaultSpec) -> Result<LinkFault, PlanError> {
        let share = |name: &str, value| self.cx.range(&format!("{path}.{name}"), value, 0.0, 1.0);
        Ok(LinkFault {
            loss: share("loss", spec.loss)?,
            duplicate: share("duplicate", spec.duplicate)?,
            reorder: share("reorder", spec.reorder)?,
            delay_max: self.cx.micros(&format!("{path}.delay-us"), spec.delay_us, 0.0)?,
        })
    }

    fn link(&self, key: &str, name: &LinkName) -> Result<u32, PlanError> {
        let count = self.topology.links().len() as u32;
        let known = |number: u32| (number < count).then_some(number);
        let found = match name {
            LinkName::Number(number) => {
                known(*number).ok_or_else(|| format!("a number below {count}"))
            }
            LinkName::Ends(ends) => {
                let number = |expected| ends.parse().ok().and_then(known).ok_or(expected);
                let found = self.names.link_from(self.topology, ends);
                found.map(|(number, _)| number).or_else(number)
            }
        };
        found.map_err(|expected| self.cx.unexpected(key, expected, name))
    }

    fn change(&self, i: usize, spec: &LinkChangeSpec) -> Result<LinkChange, PlanError> {
        let path = format!("faults.changes[{i}]");
        let key = |name: &str| format!("{path}.{name}");
        let link = self.link(&key("link"), &spec.link)?;
        let rate = |name: &str, gbps: Option<f64>| {
            let Some(gbps) = gbps else { return Ok(None) };
            let gbps = self.cx.range(&key(name), gbps, 1e-6, 1e5)?;
            Ok(Rate::from_bps((gbps * 1e9).round() as u64))
        };
        let (there, back) = (rate("gbps", spec.gbps)?, rate("gbps-back", spec.gbps_back)?);
        let rates = match (there, back.or(there)) {
            (Some(there), Some(back)) => match &spec.link {
                LinkName::Number(number) if there != back => {
                    let expected = "the ends of the link, which define its directions";
                    return Err(self.cx.unexpected(&key("link"), expected, number));
                }
                LinkName::Number(_) => Some([there, back]),
                LinkName::Ends(ends) => match self.names.link_from(self.topology, ends) {
                    Ok((_, true)) => Some([back, there]),
                    _ => Some([there, back]),
                },
            },
            (None, Some(_)) => {
                let expected = "gbps in the same change";
                return Err(self.cx.unexpected(&key("gbps-back"), expected, "none"));
            }
            _ => None,
        };
        let propagation = spec.propagation_ns.map(|ns| {
            let ns = self.cx.range(&key("propagation-ns"), ns, 0.0, 1e9)?;
            Ok(Span::from_ps((ns * 1e3).round() as u64))
        });
        let propagation = propagation.transpose()?;
        if rates.is_none() && propagation.is_none() {
            let expected = "gbps or propagation-ns";
            return Err(self.cx.unexpected(&path, expected, "neither"));
        }
        let at = Time::ZERO + self.cx.micros(&key("at-us"), spec.at_us, 0.0)?;
        Ok(LinkChange { link, at, rates, propagation })
    }

    /// Refuses different values of one link at one time.
    fn contradictions(
        &self,
        changes: &[LinkChange],
        links: &[(u32, LinkFault)],
    ) -> Result<(), PlanError> {
        let name = |link: u32| self.names.target(self.topology, Target::Link(link));
        let differ = |a: &LinkChange, b: &LinkChange| {
            let of_rates = a.rates.zip(b.rates).is_some_and(|(a, b)| a != b);
            let of_delays = a.propagation.zip(b.propagation).is_some_and(|(a, b)| a != b);
            (a.link, a.at) == (b.link, b.at) && (of_rates || of_delays)
        };
        for (i, change) in changes.iter().enumerate() {
            if let Some(first) = changes[..i].iter().position(|earlier| differ(earlier, change)) {
                let us = change.at.as_ps() as f64 / 1e6;
                let link = name(change.link);
                let expected = format!("one rate and delay of link {link} at {us} us");
                let got = format!("others than those of faults.changes[{first}]");
                return Err(self.cx.unexpected(&format!("faults.changes[{i}]"), &expected, got));
            }
        }
        for (i, (link, fault)) in links.iter().enumerate() {
            let differs = |earlier: &(u32, LinkFault)| earlier.0 == *link && earlier.1 != *fault;
            if let Some(first) = links[..i].iter().position(differs) {
                let expected = format!("the faults of link {} once", name(*link));
                let got = format!("others than those of faults.links[{first}]");
                return Err(self.cx.unexpected(&format!("faults.links[{i}]"), &expected, got));
            }
        }
        Ok(())
    }

    fn outage(&self, i: usize, spec: &OutageSpec) -> Result<Outage, PlanError> {
        let key = |name: &str| format!("faults.outages[{i}].{name}");
        let Self { topology, names, cx } = *self;
        let target = match (&spec.link, &spec.host, &spec.switch, spec.arbiter) {
            (Some(link), None, None, None) => Target::Link(self.link(&key("link"), link)?),
            (None, Some(host), None, None) => {
                let number = names.host(host, topology);
                let wrong = |expected: String| cx.unexpected(&key("host"), &expected, host);
                Target::Host(number.map_err(wrong)?)
            }
            (None, None, Some(switch), None) => {
                let number = names.switch(switch, topology);
                let wrong = |expected: String| cx.unexpected(&key("switch"), &expected, switch);
                Target::Switch(number.map_err(wrong)?)
            }
            (None, None, None, Some(arbiter)) => {
                if arbiter >= topology.n_arbiters() {
                    let expected = format!("a number below {}", topology.n_arbiters());
                    return Err(cx.unexpected(&key("arbiter"), &expected, arbiter));
                }
                Target::Arbiter(arbiter)
            }
            _ => {
                let keys = [
                    ("link", spec.link.is_some()),
                    ("host", spec.host.is_some()),
                    ("switch", spec.switch.is_some()),
                    ("arbiter", spec.arbiter.is_some()),
                ];
                let given: Vec<&str> =
                    keys.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
                let got = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
                let expected = "one of link, host, switch and arbiter";
                return Err(self.cx.unexpected(&format!("faults.outages[{i}]"), expected, got));
            }
        };
        let from = Time::ZERO + self.cx.micros(&key("from-us"), spec.from_us, 0.0)?;
        let until = match spec.until_us {
            None => Time::NEVER,
            Some(us) => {
                let least = (spec.from_us + 1e-6).min(1e12);
                Time::ZERO + self.cx.micros(&key("until-us"), us, least)?
            }
        };
        Ok(Outage { target, from, until })
    }

    /// Returns all failures of one that repeats, of which `first` is the first.
    fn repeated(
        &self,
        i: usize,
        spec: &OutageSpec,
        first: Outage,
    ) -> Result<Vec<Outage>, PlanError> {
        let key = |name: &str| format!("faults.outages[{i}].{name}");
        let (every_us, count) = match (spec.every_us, spec.count) {
            (None, None) => return Ok(vec![first]),
            (Some(every_us), Some(count)) => (every_us, count),
            (Some(_), None) => {
                return Err(self.cx.unexpected(
                    &key("every-us"),
                    "count in the same table",
                    "none",
                ));
            }
            (None, Some(_)) => {
                return Err(self.cx.unexpected(
                    &key("count"),
                    "every-us in the same table",
                    "none",
                ));
            }
        };
        let Some(until_us) = spec.until_us else {
            return Err(self.cx.unexpected(&key("every-us"), "until-us in the same table", "none"));
        };
        let count = self.cx.range(&key("count"), count.into(), 1.0, 10_000.0)? as u64;
        let least = (until_us - spec.from_us + 1e-6).min(1e12);
        let most = (1e12 - until_us) / (count - 1).max(1) as f64;
        let every_us = self.cx.range(&key("every-us"), every_us, least, most.max(least))?;
        let every = Span::from_ps((every_us * 1e6).round() as u64);
        let nth =
            |n| Outage { from: first.from + every * n, until: first.until + every * n, ..first };
        Ok((0..count).map(nth).collect())
    }
}

/// Returns the faults of the plan with the losses of the topology's file. A fault of the plan
/// replaces that of the file.
pub(super) fn with_losses(
    spec: &FaultsSpec,
    losses: &[(u32, f64)],
    topology: &Topology,
    names: &NamesSpec,
) -> FaultsSpec {
    let mut all = spec.clone();
    let number = |fault: &LinkFaultSpec| match &fault.link {
        LinkName::Number(number) => Some(*number),
        LinkName::Ends(ends) => names.link(topology, ends),
    };
    let own: Vec<u32> = spec.links.iter().filter_map(number).collect();
    for &(number, loss) in losses.iter().filter(|(number, _)| !own.contains(number)) {
        // Of several links between two nodes the name is that of the first.
        let ends = names.target(topology, Target::Link(number));
        let link = match names.link(topology, &ends) == Some(number) {
            true => LinkName::Ends(ends),
            false => LinkName::Number(number),
        };
        let fault = LinkFaultSpec { link, loss, duplicate: 0.0, reorder: 0.0, delay_us: 0.0 };
        all.links.push(fault);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rampmeter_sim::Outage;
    use rampmeter_types::Time;

    use crate::{Plan, Registry};

    fn check(faults: &str) -> Result<String, String> {
        outages(faults).map(|outages| format!("{:?}", outages[0].target))
    }

    fn outages(faults: &str) -> Result<Vec<Outage>, String> {
        let text = format!(
            "transport = {{ name = 'dctcp' }}\n[topology]\nkind = 'links'\nhosts = ['a', 'b']\n\
             switches = ['leaf']\nlinks = [{{ between = ['a', 'leaf'] }}, {{ between = ['b', \
             'leaf'] }}]\n[workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\n\
             flows = 9\n[run]\ntimeline = 't.pftrace'\ntimeline-hosts = ['b']\n[faults]\n\
             outages = [{faults}]"
        );
        let plan = Plan::from_toml(&text, "plan", &Registry::for_tests());
        let plan = plan.and_then(|plan| plan.check("plan", Path::new(".")));
        let plan = plan.map_err(|error| error.in_text(&text).to_string())?;
        Ok(plan.sim.faults.outages)
    }

    #[test]
    fn a_link_that_flaps_fails_again_and_again() {
        let flap = |more: &str| outages(&format!("{{ link = 1, from-us = 5, {more} }}"));
        let all = flap("until-us = 7, every-us = 10, count = 3").unwrap();
        let us = |time: Time| time.as_ps() / 1_000_000;
        let times: Vec<_> = all.iter().map(|one| (us(one.from), us(one.until))).collect();
        assert_eq!(times, [(5, 7), (15, 17), (25, 27)]);
        for (more, expected) in [
            ("until-us = 7, every-us = 10", "every-us: expected count in the same table, got none"),
            ("until-us = 7, count = 2", "count: expected every-us in the same table, got none"),
            ("every-us = 7, count = 2", "every-us: expected until-us in the same table, got none"),
            ("until-us = 7, every-us = 2, count = 2", "every-us: expected a number from 2.000001"),
            ("until-us = 7, every-us = 10, count = 0", "count: expected a number from 1 to"),
            ("until-us = 7, every-us = 1e12, count = 9999", "every-us: expected a number from"),
        ] {
            let error = flap(more).unwrap_err();
            assert!(error.contains(&format!("faults.outages[0].{expected}")), "{error}");
        }
    }

    #[test]
    fn hosts_switches_and_links_have_the_names_of_the_plan() {
        for (named, numbered) in [
            ("host = 'b'", "host = 1"),
            ("host = 'h1'", "host = 1"),
            ("switch = 'leaf'", "switch = 0"),
            ("link = 'leaf-b'", "link = 1"),
        ] {
            let [named, numbered] =
                [named, numbered].map(|of| check(&format!("{{ {of}, from-us = '1ms' }}")));
            assert_eq!(named.unwrap(), numbered.unwrap());
        }
        let error = check("{ host = 'leaf', from-us = 1 }").unwrap_err();
        let expected = "plan: line 16: faults.outages[0].host: expected a number below 2 or a \
                        name, a to b, got \"leaf\"";
        assert_eq!(error, expected);
        let error = check("{ link = 'a-b', from-us = 1 }").unwrap_err();
        let expected = "plan: line 16: faults.outages[0].link: expected the ends of a link of the \
                        topology (a-leaf, b-leaf), got a-b";
        assert_eq!(error, expected);
    }

    /// The later of two values would hold without a word.
    #[test]
    fn different_values_of_one_link_at_one_time_are_refused() {
        let wrong = |faults: &str| {
            let text = format!(
                "transport = {{ name = 'dctcp' }}\ntopology = {{ kind = 'star', hosts = 2 }}\n\
                 faults = {{ {faults} }}\n\
                 [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 9"
            );
            let plan = Plan::from_toml(&text, "plan", &Registry::for_tests()).unwrap();
            plan.check("plan", Path::new(".")).map(|_| ()).map_err(|error| error.to_string())
        };
        let two = |first: &str, second: &str| {
            wrong(&format!(
                "changes = [{{ link = 'h1-s0', at-us = 9, {first} }}, {{ link = 's0-h1', at-us = \
                 9.0, {second} }}]"
            ))
        };
        let expected = "plan: faults.changes[1]: expected one rate and delay of link h1-s0 at 9 \
                        us, got others than those of faults.changes[0]";
        assert_eq!(two("gbps = 10", "gbps = 20").unwrap_err(), expected);
        assert_eq!(two("propagation-ns = 1", "propagation-ns = 2").unwrap_err(), expected);
        assert_eq!(two("gbps = 10, gbps-back = 20", "gbps = 20, gbps-back = 10"), Ok(()));
        assert_eq!(two("gbps = 10", "propagation-ns = 2"), Ok(()));
        let links = "links = [{ link = 'h0-s0', loss = 0.1 }, { link = 0, loss = 0.2 }]";
        let expected = "plan: faults.links[1]: expected the faults of link h0-s0 once, got others \
                        than those of faults.links[0]";
        assert_eq!(wrong(links).unwrap_err(), expected);
    }

    /// The second of two parallel links has no name of its own.
    #[test]
    fn losses_of_a_topology_file_are_in_the_plan_that_was_checked() {
        let dir = tempfile::tempdir().unwrap();
        let file = "4 1 4\n3\n0 3 25Gbps 1us 0\n1 3 25Gbps 1us 0.25\n2 3 25Gbps 1us 0\n\
                    2 3 25Gbps 1us 0.125\n";
        std::fs::write(dir.path().join("topology.txt"), file).unwrap();
        let read = |text: &str| {
            let plan = Plan::from_toml(text, "plan", &Registry::for_tests()).unwrap();
            plan.check("plan", dir.path()).unwrap()
        };
        let plan = |faults: &str| {
            read(&format!(
                "transport = {{ name = 'dctcp' }}\n\
                 topology = {{ kind = 'file', file = 'topology.txt' }}\nfaults = {{ {faults} }}\n\
                 [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
            ))
        };
        let checked = plan("");
        let links = checked.plan().faults.links.iter();
        let losses: Vec<_> = links.map(|fault| (fault.link.to_string(), fault.loss)).collect();
        assert_eq!(losses, [("n1-n3".to_owned(), 0.25), ("3".to_owned(), 0.125)]);
        // That plan has the same losses.
        assert_eq!(read(&checked.plan().to_toml()).sim.faults, checked.sim.faults);
        let own = plan("links = [{ link = 'n1-n3', loss = 0.5 }]").sim.faults;
        let losses: Vec<f64> = own.links.iter().map(|(_, fault)| fault.loss).collect();
        assert_eq!(losses, [0.5, 0.125]);
    }
}
