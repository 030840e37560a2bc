//! Runs a node from its configuration. The transport is looked up by name once, here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rampmeter_proto::catalogue::{Action, Catalogue};
use rampmeter_proto::coexistence::{CoexistingArbiter, CoexistingHost};
use rampmeter_proto::registered::RegisteredTransport;
use rampmeter_ring::Clients;
use rampmeter_runtime::datapath::Rails;
use rampmeter_runtime::datapath::udp::{UdpConfig, UdpDatapath};
#[cfg(feature = "xdp")]
use rampmeter_runtime::datapath::xdp::XdpDatapath;
use rampmeter_runtime::{
    Applications, Clock, Datapath, Node, NodeConfig, SealConfig, SecureDatapath, Security, Signals,
    drive,
};
use rampmeter_types::{Endpoint, Time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use tracing::{info, warn};

use crate::apps::NoApplications;
use crate::config::Setup;
use crate::error::{Error, InputError};
use crate::key_log::KeyLogQueue;
use crate::metrics::NodeObserver;
use crate::node_config::node_config;
use crate::reload::{ConfigFactory, ConfigLoader};

/// Runs `rampd node`.
pub(crate) fn node<C: Catalogue>(config: &Path) -> Result<(), Error> {
    // First, because SIGHUP ends a process without a handler, even one that has just been started.
    let signals = stop_signals()?;
    let setup = Setup::load::<C>(config)?;
    if setup.is_arbiter {
        let error =
            InputError::unexpected("the id of a host", "that of an arbiter (use `rampd arbiter`)");
        return Err(error.at("node.id").in_file(config).into());
    }
    let clock = clock(&setup)?;
    raise_descriptor_limit();
    match &setup.acceptor {
        Some(acceptor) => {
            let listen = || {
                let listening = Clients::listen_with(acceptor.clone(), &setup.access, clock);
                let clients = listening.map_err(|e| io::Error::other(e.to_string()))?;
                info!(socket = %acceptor.path.display(), "applications may attach");
                Ok(clients)
            };
            run_host::<C, _, _>(&setup, clock, listen, &signals)
        }
        None => {
            warn!(code = "no-socket", "node.socket is not set: no application can attach");
            run_host::<C, _, _>(&setup, clock, || Ok(NoApplications), &signals)
        }
    }
}

/// Runs `rampd arbiter`.
pub(crate) fn arbiter<C: Catalogue>(config: &Path) -> Result<(), Error> {
    let signals = stop_signals()?;
    let setup = Setup::load::<C>(config)?;
    if !setup.is_arbiter {
        let error =
            InputError::unexpected("the id of an arbiter", "that of a host (use `rampd node`)");
        return Err(error.at("node.id").in_file(config).into());
    }
    let clock = clock(&setup)?;
    raise_descriptor_limit();
    find::<C, _>(&setup, RunArbiter { setup: &setup, clock, signals: &signals })
}

/// Starts the node's clock.
pub(crate) fn clock(setup: &Setup) -> Result<Clock, Error> {
    let advice = "use clock = \"time-of-day\"";
    Clock::start(setup.clock).map_err(|error| {
        let error = InputError::other(format!("{error}: {advice}"));
        error.at("node.clock").in_file(&setup.file).into()
    })
}

/// Raises the limit of descriptors to the maximum of the system: each attached program needs two,
/// and those of an agent one per connection.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(code = "descriptor-limit", %error, "cannot raise the limit of descriptors");
    }
}

/// Runs a host of any transport until it is stopped. `apps` is called once the node has its sockets
/// on the network: a node that cannot open them must not replace the Unix socket of another.
pub(crate) fn run_host<C: Catalogue, A: Applications, F: FnOnce() -> Result<A, Error>>(
    setup: &Setup,
    clock: Clock,
    apps: F,
    signals: &Signals,
) -> Result<(), Error> {
    find::<C, _>(setup, RunHost { setup, clock, apps, signals })
}

fn find<C: Catalogue, A: Action<Output = Result<(), Error>>>(
    setup: &Setup,
    action: A,
) -> Result<(), Error> {
    setup.transport.find::<C, A>(action)?
}

struct RunHost<'a, F> {
    setup: &'a Setup,
    clock: Clock,
    apps: F,
    signals: &'a Signals,
}

impl<A: Applications, F: FnOnce() -> Result<A, Error>> Action for RunHost<'_, F> {
    type Output = Result<(), Error>;

    fn run<T: RegisteredTransport>(self) -> Self::Output {
        let Self { setup, clock, apps, signals } = self;
        let config = setup.transport.config::<T>()?;
        let again: ConfigFactory<'_, T::Host> =
            &|setup| setup.transport.config::<T>().map(Arc::new);
        run::<T::Host, A>(setup, clock, Arc::new(config), again, apps, signals)
    }

    fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(self) -> Self::Output {
        let Self { setup, clock, apps, signals } = self;
        let both = setup.transport.both::<U, L>()?;
        let again: ConfigFactory<'_, CoexistingHost<U::Host, L::Host>> =
            &|setup| setup.transport.both::<U, L>().map(Arc::new);
        run::<CoexistingHost<U::Host, L::Host>, A>(
            setup,
            clock,
            Arc::new(both),
            again,
            apps,
            signals,
        )
    }
}

struct RunArbiter<'a> {
    setup: &'a Setup,
    clock: Clock,
    signals: &'a Signals,
}

impl Action for RunArbiter<'_> {
    type Output = Result<(), Error>;

    fn run<T: RegisteredTransport>(self) -> Self::Output {
        let Self { setup, clock, signals } = self;
        let config = setup.transport.config::<T>()?;
        let again: ConfigFactory<'_, T::Arbiter> =
            &|setup| setup.transport.config::<T>().map(Arc::new);
        let apps = || Ok(NoApplications);
        run::<T::Arbiter, _>(setup, clock, Arc::new(config), again, apps, signals)
    }

    fn coexisting<U: RegisteredTransport, L: RegisteredTransport>(self) -> Self::Output {
        let Self { setup, clock, signals } = self;
        let both = setup.transport.both::<U, L>()?;
        let again: ConfigFactory<'_, CoexistingArbiter<U, L>> =
            &|setup| setup.transport.both::<U, L>().map(Arc::new);
        let apps = || Ok(NoApplications);
        run::<CoexistingArbiter<U, L>, _>(setup, clock, Arc::new(both), again, apps, signals)
    }
}

fn run<E: Endpoint, A: Applications>(
    setup: &Setup,
    clock: Clock,
    protocol: Arc<E::Config>,
    again: ConfigFactory<'_, E>,
    apps: impl FnOnce() -> Result<A, Error>,
    signals: &Signals,
) -> Result<(), Error> {
    let config = node_config(setup)?;
    match &setup.interface {
        None if !setup.more_rails.is_empty() => {
            let open = |udp: UdpConfig| Ok((UdpDatapath::open(&udp)?, udp.peers));
            let rails = Rails::new(setup.rails().map(open).collect::<io::Result<_>>()?);
            let datapath = secured(setup, &config, rails)?;
            let node = Node::<E, _, A>::new(config, protocol, datapath, apps()?, clock.now());
            serve(setup, &clock, node, again, signals)
        }
        None => {
            let datapath = secured(setup, &config, UdpDatapath::open(&setup.udp)?)?;
            let node = Node::<E, _, A>::new(config, protocol, datapath, apps()?, clock.now());
            serve(setup, &clock, node, again, signals)
        }
        #[cfg(feature = "xdp")]
        Some(interface) => {
            let datapath = secured(setup, &config, XdpDatapath::open(&setup.xdp(interface))?)?;
            let node = Node::<E, _, A>::new(config, protocol, datapath, apps()?, clock.now());
            serve(setup, &clock, node, again, signals)
        }
        #[cfg(not(feature = "xdp"))]
        Some(_) => {
            let error = InputError::unexpected("udp, as this rampd was built without xdp", "xdp");
            Err(error.at("node.datapath").in_file(&setup.file).into())
        }
    }
}

/// Returns a datapath with datagrams protected as configured.
pub(crate) fn secured<D: Datapath>(
    setup: &Setup,
    config: &NodeConfig,
    datapath: D,
) -> Result<SecureDatapath<D>, Error> {
    let security = match &setup.keys {
        None => Security::Checksum,
        Some(keys) => Security::Sealed(SealConfig {
            node: config.node,
            transport: config.transport,
            incarnation: config.incarnation,
            started_ns: rampmeter_runtime::clock::unix_time_ns(),
            key: keys.private(setup.id)?,
            peers: keys.public.iter().cloned().map(Some).collect(),
        }),
    };
    let mut secured = SecureDatapath::new(datapath, security);
    if let Some(keys) = &setup.keys
        && let Some(file) = keys.open_log()?
    {
        let path = keys.log.as_deref().unwrap_or(Path::new("")).display();
        warn!(
            code = "key-log-open",
            file = %path,
            "node.key-log: readers of this file can decrypt all packets of this node"
        );
        secured.log_keys(KeyLogQueue::start(file, path.to_string())?);
    }
    Ok(secured)
}

fn serve<E: Endpoint, D: Datapath, A: Applications>(
    setup: &Setup,
    clock: &Clock,
    mut node: Node<E, SecureDatapath<D>, A>,
    protocol: ConfigFactory<'_, E>,
    signals: &Signals,
) -> Result<(), Error> {
    node.set_clock_origin(clock.now(), clock.origin());
    let mut watch = NodeObserver::start(setup)?;
    let mut current = setup.clone();
    info!(node = setup.id.get(), address = %setup.own_addresses(), "started");
    notify_systemd(NotifyState::Ready);
    let (mut loading, mut is_clock_over) = (ConfigLoader::default(), false);
    let each = |node: &mut Node<E, SecureDatapath<D>, A>, now: Time| {
        watch.observe(&current, node, now);
        loading.poll(signals, &mut current, protocol, node, now);
        if Clock::is_near_end(now) && !is_clock_over {
            is_clock_over = true;
            signals.stop();
        }
    };
    drive(&mut node, clock, setup.wait, signals, setup.drain_timeout, each)?;
    notify_systemd(NotifyState::Stopping);
    watch.report(setup, &node);
    info!(node = setup.id.get(), "stopped");
    if is_clock_over {
        let error = "node.clock: the clock has run for 213 days, its range: start the node again";
        return Err(Error::System(io::Error::other(error)));
    }
    Ok(())
}

/// Reports the state of the node to the service manager, if one has started it and waits for the
/// report.
fn notify_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(code = "service-manager", %error, "cannot notify the service manager");
    }
}

/// Returns signals that stop the node at SIGTERM or SIGINT and reload its configuration at SIGHUP.
///
/// With a handler for SIGXFSZ, a write beyond `ulimit -f` fails instead of ending the process. The
/// log drops lines, and a program whose memory would exceed the limit is refused.
pub(crate) fn stop_signals() -> Result<Signals, Error> {
    let signals = Signals::new()?;
    let mut system = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGXFSZ])?;
    let signals_received = signals.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in system.forever() {
            match signal {
                SIGHUP => signals_received.reload(),
                SIGXFSZ => {}
                _ => signals_received.stop(),
            }
        }
    })?;
    Ok(signals)
}
