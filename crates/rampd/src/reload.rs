//! Reload of a changed configuration while the node runs (SIGHUP).
//!
//! # Design
//!
//! The problem: to read a configuration needs the file system, the name server and the directory of
//! users, which may take seconds or hang. The node's thread therefore reads no files. Another
//! thread reads and checks the files ([`ConfigLoader`]) and wakes the node, whose thread applies
//! the result in one step. After a SIGHUP meanwhile it reads the files once more.
//!
//! Either all changes are applied, or none is and a line in the log names the keys that need a
//! restart.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use rampmeter_proto::keys::BadKey;
use rampmeter_runtime::{
    Applications, Datapath, Node, NodeConfig, PrivateKey, SecureDatapath, Signals,
};
use rampmeter_types::{Endpoint, Protocol, Span, Time};
use tracing::{info, warn};

use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::node_config::node_config;

/// Parameters of the protocol in a configuration.
pub(crate) type ConfigFactory<'a, E> =
    &'a dyn Fn(&Setup) -> Result<Arc<<E as Protocol>::Config>, BadKey>;

/// Time after which a reading thread counts as stalled.
const STALLED: Span = Span::from_us(10_000_000);
/// Maximum number of stalled threads that a node abandons.
const STALLED_MAX: u32 = 8;

/// Result of reading.
#[derive(Debug)]
struct LoadResult {
    setup: Setup,
    config: NodeConfig,
    key: Option<PrivateKey>,
}

/// Reads configurations in a separate thread, one at a time.
#[derive(Debug, Default)]
pub(crate) struct ConfigLoader {
    result: Option<Receiver<Result<LoadResult, Error>>>,
    /// True if another SIGHUP arrived while the files were being read.
    is_reload_pending: bool,
    /// Start of the present thread.
    began_at: Time,
    n_stalled: u32,
}

impl ConfigLoader {
    /// Handles SIGHUP, and applies the configuration that has been read. To be called after every
    /// iteration of the node.
    pub(crate) fn poll<E: Endpoint, D: Datapath, A: Applications>(
        &mut self,
        signals: &Signals,
        setup: &mut Setup,
        protocol: ConfigFactory<'_, E>,
        node: &mut Node<E, SecureDatapath<D>, A>,
        now: Time,
    ) {
        if signals.take_reload() {
            self.is_reload_pending = true;
            self.end_stalled(now);
        }
        if let Some(result) = self.take_result() {
            match result.and_then(|loaded| apply(loaded, setup, protocol, node, now)) {
                Ok(()) => info!("configuration reloaded"),
                Err(error) => {
                    warn!(code = "reload-rejected", %error, "configuration not reloaded");
                }
            }
        }
        if self.is_reload_pending && self.result.is_none() {
            self.is_reload_pending = false;
            self.began_at = now;
            self.begin(setup, signals);
        }
    }

    /// Abandons a thread that has read for too long, so that another one can begin.
    fn end_stalled(&mut self, now: Time) {
        if self.result.is_none() {
            return;
        }
        let seconds = now.saturating_since(self.began_at).as_secs_f64().round();
        if now >= self.began_at + STALLED && self.n_stalled < STALLED_MAX {
            self.n_stalled += 1;
            self.result = None;
            warn!(
                code = "reload-stalled",
                seconds, "reload of the configuration restarted: it stalled"
            );
        } else {
            warn!(
                code = "reload-stalled",
                seconds, "reload deferred until the present one has ended"
            );
        }
    }

    /// Returns the result of the thread, once there is one.
    fn take_result(&mut self) -> Option<Result<LoadResult, Error>> {
        match self.result.as_ref()?.try_recv() {
            Ok(result) => {
                self.result = None;
                Some(result)
            }
            Err(TryRecvError::Empty) => None,
            // The thread has panicked, which ends the process.
            Err(TryRecvError::Disconnected) => {
                self.result = None;
                None
            }
        }
    }

    fn begin(&mut self, setup: &Setup, signals: &Signals) {
        let (sender, receiver) = channel();
        let (reread, file, signals) = (setup.reread, setup.file.clone(), signals.clone());
        let load = move || {
            let read = || {
                let setup = reread(&file)?;
                let config = node_config(&setup)?;
                let key = setup.keys.as_ref().map(|keys| keys.private(setup.id)).transpose()?;
                Ok(LoadResult { setup, config, key })
            };
            let _ = sender.send(read());
            signals.wake();
        };
        match std::thread::Builder::new().name("reload".to_owned()).spawn(load) {
            Ok(_) => self.result = Some(receiver),
            Err(error) => warn!(code = "reload-rejected", %error, "configuration not reloaded"),
        }
    }
}

/// Applies all of a configuration, or nothing. Messages continue.
fn apply<E: Endpoint, D: Datapath, A: Applications>(
    LoadResult { setup: mut new, config, key }: LoadResult,
    setup: &mut Setup,
    protocol: ConfigFactory<'_, E>,
    node: &mut Node<E, SecureDatapath<D>, A>,
    now: Time,
) -> Result<(), Error> {
    let refuse = |key: &str| Err(InputError::other("changes need a restart").at(key).into());
    let fixed = setup.keys_for_restart(&new);
    if !fixed.is_empty() {
        return refuse(&fixed.join("; "));
    }
    // The node's counters continue from its start.
    let config = NodeConfig { agreement: new.agreement(), ..config };
    let parameters = protocol(&new)?;
    let others = new.udp.peers != setup.udp.peers || new.more_rails != setup.more_rails;
    if others && !set_peers(node, &new) {
        return refuse("peer.address over AF_XDP");
    }
    let is_same = new.facts == setup.facts && new.transport == setup.transport;
    if !is_same && !node.reconfigure(now, parameters) {
        set_peers(node, setup);
        return refuse(&changed_parameters(setup, &new).join(", "));
    }
    if let (Some(key), Some(keys)) = (key, &new.keys) {
        node.datapath_mut().set_keys(key, keys.public.iter().cloned().map(Some).collect());
    }
    node.set_config(now, config);
    new.access = setup.access.clone();
    if let Some(acceptor) = &new.acceptor {
        new.access.set(acceptor.limits, acceptor.services.clone());
    }
    *setup = new;
    Ok(())
}

/// Returns the differing keys from which parameters of the transport follow.
fn changed_parameters(before: &Setup, new: &Setup) -> Vec<&'static str> {
    let (old, facts) = (&before.facts, &new.facts);
    let keys = [
        ("network.rate-mbps", old.access_rate != facts.access_rate),
        ("network.control-rtt-us", old.control_rtt != facts.control_rtt),
        ("network.data-rtt-us", old.data_rtt != facts.data_rtt),
        ("network.unreachable-after-ms", old.abort_timeout_min != facts.abort_timeout_min),
        ("peer", old.n_hosts != facts.n_hosts),
        ("transport", before.transport != new.transport),
    ];
    keys.into_iter().filter(|(_, has_changed)| *has_changed).map(|(key, _)| key).collect()
}

/// Changes the addresses of all nodes on all networks; returns false if the datapath does not
/// support it.
fn set_peers<E: Endpoint, D: Datapath, A: Applications>(
    node: &mut Node<E, SecureDatapath<D>, A>,
    setup: &Setup,
) -> bool {
    let mut rails = (0..).zip(setup.rails());
    rails.all(|(rail, udp)| node.datapath_mut().set_peers(rail, &udp.peers))
}
