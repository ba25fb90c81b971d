//! [`Host`]: a core on this host: identity, clock, sockets, turn loop.
//!
//! The assembly of the parts.

use crate::Catalogue;
use crate::place::{Place, PlaceError};
use dacapo_base::{Address, IP, Random, failpoint};
use dacapo_core::{
    Code, ControlCrypto, Controllers, Core, CoreConfig, CoreEvent, DialParams, EndpointKeys, Error,
    PeerId,
};
use dacapo_lift::{Meter, Property, TransportSpec};
use dacapo_path::Leads;
use dacapo_reactor::{FULL_PERMILLE, Reactor};
use dacapo_security::{Fingerprint, Identity, endpoint_keys};
use dacapo_sys::{clock, entropy};
use dacapo_transport::entry::{ControlCarrier, Opened, Setup, StreamListener};
use dacapo_transport::sockets::Config;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The port that a core listens on when nothing else is said.
pub const PORT: u16 = 19_980;

/// What a host is told before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Whether a session that this host joins may use streams. Without them the host says in every
    /// JOIN that it has no TCP: for a way that carries datagrams only, such as a link emulator.
    pub streams: bool,
    /// How sockets for datagrams are set: those of UDP, QUIC and XTP.
    pub sockets: Config,
    /// The most reactors of an [`Endpoint`](crate::Endpoint) on this host. It begins with one.
    pub reactors_max: NonZeroUsize,
    /// From which share of a second that a reactor has worked, in permille, it is full, and peers
    /// that are new go to another one.
    pub full_permille: u16,
    /// The controller of each path of datagrams, by its name in the catalogue; `None`: what modules
    /// report about yields to others (`bbr`), but on this very host, where flows keep the bounds
    /// that were agreed (`reserved`).
    pub controller: Option<&'static str>,
}

impl Default for HostConfig {
    /// With streams, every help, and a reactor for each processor when those that are there are
    /// full.
    fn default() -> Self {
        Self {
            streams: true,
            sockets: Config::default(),
            reactors_max: dacapo_sys::process::processors(),
            full_permille: FULL_PERMILLE,
            controller: None,
        }
    }
}

/// The environment variable that does without helps of the kernel: `no-gso`, `no-gro`, or both with
/// a comma between.
pub const SOCKETS_ENV: &str = "DACAPO_UDP";

/// The environment variable that names the controller of paths of datagrams, such as `reserved` on
/// a network of one's own; empty: the usual.
pub const CONTROLLER_ENV: &str = "DACAPO_CONTROLLER";

impl HostConfig {
    /// The usual, but for what [`SOCKETS_ENV`] and [`CONTROLLER_ENV`] say.
    ///
    /// # Errors
    /// [`Code::System`] when the former says something else, and [`Code::IllegalGraph`] when there
    /// is no controller of the latter's name, with what there is.
    pub fn from_env() -> Result<Self, Error> {
        let read = |name| std::env::var_os(name).unwrap_or_default();
        let config = Self::default().without(&read(SOCKETS_ENV).to_string_lossy())?;
        config.controlled_by(&read(CONTROLLER_ENV).to_string_lossy())
    }

    /// The controller of each path of datagrams is the one of this name; the usual where that is
    /// empty.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] when this build has none of this name, with those that it has.
    pub fn controlled_by(mut self, name: &str) -> Result<Self, Error> {
        if !name.is_empty() {
            let found = Catalogue::default().controller(name).map(|entry| entry.spec.name);
            let named =
                |error: Error| Error::new(error.code, format!("{CONTROLLER_ENV}: {}", error.text));
            self.controller = Some(found.map_err(named)?);
        }
        Ok(self)
    }

    /// Does without what a text names, such as `no-gso,no-gro`.
    ///
    /// # Errors
    /// [`Code::System`] for any other word.
    pub fn without(mut self, text: &str) -> Result<Self, Error> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "no-gso" => self.sockets.gso = false,
                "no-gro" => self.sockets.gro = false,
                _ => {
                    let text = format!("{word:?} is neither \"no-gso\" nor \"no-gro\"");
                    return Err(Error::new(Code::System, format!("{SOCKETS_ENV}: {text}")));
                }
            }
        }
        Ok(self)
    }
}

/// What a host is made of.
pub(crate) struct Seed {
    identity: Identity,
    config: HostConfig,
    parts: Arc<Catalogue>,
}

impl Seed {
    /// A host of it, which listens nowhere.
    ///
    /// # Errors
    /// As [`Host::with_identity`].
    pub fn grow(&self) -> Result<Host, Error> {
        Host::of(self.identity.clone(), self.config, Arc::clone(&self.parts))
    }
}

/// A core on this host.
pub struct Host {
    reactor: Reactor,
    identity: Identity,
    config: HostConfig,
    /// What flows are composed of here.
    parts: Arc<Catalogue>,
    /// What is known of them.
    catalogue: Arc<dacapo_lift::Catalogue>,
    listening: Vec<Address>,
    /// The transports that cannot be served here, and why.
    missing: Vec<(&'static TransportSpec, String)>,
    /// What carries control, by the scheme of the addresses that it reads.
    control: Controls,
    /// The transports that carry a flow in a stream each.
    streams: Vec<&'static TransportSpec>,
}

/// How often another port is tried, where the system chooses it and another protocol's of the same
/// number is taken.
const PORT_TRIES: usize = 16;

impl Host {
    /// A host with the identity of this user, made at the first start.
    ///
    /// # Errors
    /// [`Code::System`] with the file and what to do, when the identity cannot be read or made; as
    /// [`HostConfig::from_env`].
    pub fn new() -> Result<Self, Error> {
        Self::configured(HostConfig::from_env()?)
    }

    /// The same, told what else it is to be.
    ///
    /// # Errors
    /// As [`Host::new`].
    pub fn configured(config: HostConfig) -> Result<Self, Error> {
        Self::assemble(user_identity()?, config)
    }

    /// A host with this identity.
    ///
    /// # Errors
    /// [`Code::System`] when the system gives no randomness or no descriptor.
    pub fn with_identity(identity: Identity) -> Result<Self, Error> {
        Self::assemble(identity, HostConfig::default())
    }

    /// Another one, with the same identity, told the same; it listens nowhere.
    ///
    /// # Errors
    /// As [`Host::with_identity`].
    pub fn another(&self) -> Result<Self, Error> {
        self.seed().grow()
    }

    /// What another one is made of.
    pub(crate) fn seed(&self) -> Seed {
        let (identity, parts) = (self.identity.clone(), Arc::clone(&self.parts));
        Seed { identity, config: self.config, parts }
    }

    /// A host with this identity, told what else it is to be.
    ///
    /// # Errors
    /// As [`Host::with_identity`].
    pub fn assemble(identity: Identity, told: HostConfig) -> Result<Self, Error> {
        Self::of(identity, told, Arc::new(Catalogue::default()))
    }

    /// A host of these parts.
    ///
    /// # Errors
    /// As [`Host::with_identity`], [`Catalogue::specs`] and [`Catalogue::controller`];
    /// [`Code::System`] when none of the transports carries control.
    pub fn of(identity: Identity, told: HostConfig, parts: Arc<Catalogue>) -> Result<Self, Error> {
        let catalogue = Arc::new(parts.specs()?);
        let HostConfig { streams, sockets, controller, .. } = told;
        let mut random = Random::from_seed(entropy().map_err(system)?);
        let is_stream = |id| catalogue.transport(id).is_some_and(|it| it.streams);
        let is_offered = |id| streams || !is_stream(id);
        let mut config = CoreConfig::new(catalogue.only(|_| true, is_offered));
        if let Some(name) = controller {
            config.controllers = parts.controller(name)?.clone().into();
        } else {
            let usual = |leads| parts.usual_controller(leads).cloned();
            let Controllers { here, elsewhere } = config.controllers;
            let here = usual(Leads::Here).unwrap_or(here);
            let elsewhere = usual(Leads::Elsewhere).unwrap_or(elsewhere);
            config.controllers = Controllers { here, elsewhere };
        }
        config.boot = clock::boot_id();
        config.time_namespace = clock::time_namespace();
        config.meter = Some(Meter::new(|| clock::now().as_nanos()));
        let (crypto, keys) = crypto(&identity, &mut random);
        // Where zero of CLOCK_MONOTONIC lies does not matter to quinn; only differences do.
        let origin = std::time::Instant::now();
        let core = Core::new(config, crypto, random.fork(), origin);
        let mut reactor = Reactor::new(core).map_err(system)?;
        let mut setup = Setup {
            identity: &identity,
            keys: &keys,
            random: &mut random,
            origin,
            sockets: &sockets,
        };
        let (control, streams, missing) = open(&parts, &mut reactor, &mut setup);
        if control.is_empty() {
            return Err(Error::new(Code::System, "no transport here carries control"));
        }
        let listening = Vec::new();
        Ok(Self {
            reactor,
            identity,
            config: told,
            parts,
            catalogue,
            listening,
            missing,
            control,
            streams,
        })
    }

    /// This host's identity as others see it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    /// Who a peer says it is; "unverified" until it is pinned, which does not exist yet.
    #[must_use]
    pub fn peer_fingerprint(&mut self, peer: PeerId) -> Option<Fingerprint> {
        dacapo_security::peer_fingerprint(self.reactor.core().peer_identity(peer)?)
    }

    /// Listens on these addresses for control and, for flows in streams, with every transport that
    /// has them: at the same ports, or at others, that are told to whoever joins.
    /// Port 0 lets the system choose. Where one of these cannot be had the host serves without;
    /// [`Host::missing`] says why.
    ///
    /// # Errors
    /// [`Code::System`] with the address and what to do, for example when the port is in use;
    /// [`Code::Unreachable`] for a scheme that no transport here reads, and for addresses of two:
    /// each scheme is listened at by a call of its own.
    pub fn listen(&mut self, addrs: &[Address]) -> Result<(), Error> {
        let is_chosen = addrs.iter().any(|addr| addr.port() == Some(0));
        let tries = if is_chosen { PORT_TRIES } else { 1 };
        for left in (0..tries).rev() {
            failpoint!("host.before_bind");
            let listeners = carrier(&mut self.control, addrs)?.listen(addrs).map_err(system)?;
            failpoint!("host.bound_udp");
            let addresses = listeners.iter().flat_map(|it| it.local_addrs());
            let found: Vec<Address> = addresses.copied().collect();
            let Some(bound) = self.bind_streams(&found, left > 0) else { continue };
            for (spec, listener) in bound {
                self.listen_streams(spec, listener)?;
            }
            self.listening.extend(found);
            failpoint!("host.listening");
            for transport in listeners {
                self.reactor.listen(transport).map_err(system)?;
            }
            return Ok(());
        }
        Err(Error::new(Code::System, "no port is free in all protocols"))
    }

    /// What listens for streams beside control, or why it does not; `None` where a port is taken
    /// and others are to be tried.
    fn bind_streams(&mut self, control: &[Address], are_others: bool) -> Option<Vec<Bound>> {
        let mut all = Vec::new();
        let scheme = control.first().map(Address::scheme);
        for &spec in self.streams.iter().filter(|spec| Some(spec.scheme) == scheme) {
            let bound = self.reactor.bind_streams(spec.id, control);
            let is_taken = |it: &io::Error| it.kind() == io::ErrorKind::AddrInUse;
            if are_others && bound.as_ref().is_err_and(is_taken) {
                return None;
            }
            all.push((spec, bound));
        }
        Some(all)
    }

    fn listen_streams(
        &mut self,
        spec: &'static TransportSpec,
        listener: io::Result<StreamListener>,
    ) -> Result<(), Error> {
        match listener {
            Ok(StreamListener { transport, port }) => {
                self.reactor.listen_streams(spec.id, transport).map_err(system)?;
                port.into_iter().for_each(|port| {
                    self.reactor.core().set_stream_port(spec.id, port);
                });
            }
            Err(error) => self.miss(spec, &error),
        }
        Ok(())
    }

    /// What goes over a transport that is missing is missing too.
    fn miss(&mut self, spec: &'static TransportSpec, why: &io::Error) {
        let is_gone = |it: &&&'static TransportSpec| **it == spec || it.over == Some(spec);
        let gone = self.catalogue.transports().iter().filter(is_gone);
        self.missing.extend(gone.map(|it| (*it, why.to_string())));
    }

    /// The transports that cannot be served here, and why.
    #[must_use]
    pub fn missing(&self) -> &[(&'static TransportSpec, String)] {
        &self.missing
    }

    /// The transports that can be served here, by number.
    #[must_use]
    pub fn transports(&self) -> Vec<u16> {
        let can = |spec: &&&TransportSpec| self.missing.iter().all(|(it, _)| it.id != spec.id);
        self.catalogue.transports().iter().filter(can).map(|spec| spec.id).collect()
    }

    /// The addresses that this host listens on.
    #[must_use]
    pub fn listening(&self) -> &[Address] {
        &self.listening
    }

    /// Begins to connect to a core; [`CoreEvent::PeerOpen`] or [`CoreEvent::PeerLost`] follows.
    ///
    /// # Errors
    /// [`Code::Unreachable`] when there is no way to the address.
    pub fn connect(&mut self, remote: Address) -> Result<PeerId, Error> {
        self.connect_with(remote, DialParams::default())
    }

    /// The same, told how long to try.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn connect_with(&mut self, remote: Address, params: DialParams) -> Result<PeerId, Error> {
        let dialed = carrier(&mut self.control, &[remote])?.dial(remote);
        let transport = dialed.map_err(|error| Error::caused(Code::Unreachable, error))?;
        self.reactor.connect_with(transport, remote, params)
    }

    /// The modules and transports that exist here.
    #[must_use]
    pub fn catalogue(&self) -> &Arc<dacapo_lift::Catalogue> {
        &self.catalogue
    }

    /// What flows are composed of here.
    #[must_use]
    pub fn parts(&self) -> &Arc<Catalogue> {
        &self.parts
    }

    /// What it was told.
    #[must_use]
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// The turn loop.
    pub fn reactor(&mut self) -> &mut Reactor {
        &mut self.reactor
    }

    /// Turns until an event comes, or `most` has passed, or something watched is ready (its tokens
    /// are then in `tokens`). It makes a whole turn before it looks at the time: with no time at
    /// all it looks what has come, so who asks again and again is never deaf.
    ///
    /// # Errors
    /// [`Code::System`] when waiting fails.
    pub fn next_event(
        &mut self,
        most: Duration,
        tokens: &mut Vec<u32>,
    ) -> Result<Option<CoreEvent>, Error> {
        tokens.clear();
        let end = self.reactor.now() + most;
        loop {
            if let Some(event) = self.reactor.poll_event() {
                return Ok(Some(event));
            }
            let now = self.reactor.now();
            let ready = self.reactor.turn(end.since(now)).map_err(system)?;
            tokens.extend(ready);
            if !tokens.is_empty() || self.reactor.now() >= end {
                return Ok(self.reactor.poll_event());
            }
        }
    }
}

/// What listens for streams over a transport, or why it does not.
type Bound = (&'static TransportSpec, io::Result<StreamListener>);

/// What carries control, by the scheme of the addresses that it reads.
type Controls = BTreeMap<&'static str, Box<dyn ControlCarrier>>;
type Missing = Vec<(&'static TransportSpec, String)>;
type Streams = Vec<&'static TransportSpec>;

/// What carries control to these addresses.
///
/// # Errors
/// [`Code::Unreachable`] when nothing does, with the schemes that there are, and when they are of
/// two.
fn carrier<'a>(
    all: &'a mut Controls,
    addresses: &[Address],
) -> Result<&'a mut dyn ControlCarrier, Error> {
    let unreachable = |text: String| Error::new(Code::Unreachable, text);
    let scheme = addresses.first().map_or(IP, Address::scheme);
    if let Some(other) = addresses.iter().find(|it| it.scheme() != scheme) {
        let text =
            format!("{other} is not of {scheme}, as the first: listen there by another call");
        return Err(unreachable(text));
    }
    if !all.contains_key(scheme) {
        let known = all.keys().copied().collect::<Vec<_>>().join(", ");
        let text = format!("no transport here reads addresses of {scheme}; there are: {known}");
        return Err(unreachable(text));
    }
    let carrier = all.get_mut(scheme).ok_or_else(|| unreachable(scheme.to_owned()))?;
    Ok(&mut **carrier)
}

/// Opens the transports of a host: for each scheme the first that carries control, and all that
/// have streams.
fn open(
    parts: &Catalogue,
    reactor: &mut Reactor,
    setup: &mut Setup<'_>,
) -> (Controls, Streams, Missing) {
    let (mut control, mut streams, mut missing) = (Controls::new(), Streams::new(), Missing::new());
    for entry in &parts.transports {
        let spec = entry.spec;
        if let Some(over) = spec.over {
            reactor.set_opened_by(spec.id, over.id);
            continue;
        }
        match (entry.open)(setup) {
            Ok(Opened::Control(carrier)) => {
                control.entry(spec.scheme).or_insert(carrier);
            }
            Ok(Opened::Streams(carrier)) => {
                reactor.set_stream_carrier(spec.id, carrier);
                streams.push(spec);
            }
            Err(error) => missing.push((spec, error.to_string())),
        }
    }
    for &spec in streams.iter().filter(|spec| spec.same_host) {
        if let Some(fallback) = fallback_of(spec, &streams) {
            reactor.set_stream_fallback(spec.id, fallback.id);
        }
    }
    (control, streams, missing)
}

/// What stands in, where a transport of one host lacks later: what listens at the port of control.
/// On one host its bytes never leave memory, so nothing that was agreed is given up but what only
/// memory has.
fn fallback_of(
    spec: &TransportSpec,
    all: &[&'static TransportSpec],
) -> Option<&'static TransportSpec> {
    let gives = |it: &TransportSpec, property: &Property| {
        it.properties.contains(property) || *property == Property::Integrity
    };
    let is_beside = |it: &TransportSpec| {
        it.scheme == spec.scheme && it.port.is_some_and(|port| port.above == 0)
    };
    let mut others = all.iter().copied().filter(|it| !it.same_host && is_beside(it));
    others.find(|it| spec.properties.iter().all(|property| gives(it, property)))
}

fn system(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::caused(Code::System, error)
}

/// The identity of this user, made at the first start.
pub(crate) fn user_identity() -> Result<Identity, Error> {
    let dir = identity_dir()?;
    failpoint!("identity.before");
    let identity = Identity::load_or_create(&dir).map_err(system)?;
    failpoint!("identity.ready");
    Ok(identity)
}

fn identity_dir() -> Result<PathBuf, Error> {
    dacapo_security::default_dir(|name| std::env::var_os(name)).ok_or_else(|| {
        let text = "neither XDG_STATE_HOME nor HOME is set: set one, the identity is kept there";
        Error::new(Code::System, text)
    })
}

fn crypto(
    identity: &Identity,
    random: &mut Random,
) -> (ControlCrypto, dacapo_security::EndpointKeys) {
    let mut secret = [0; 64];
    random.fill(&mut secret);
    let keys = endpoint_keys(&secret);
    let crypto = ControlCrypto {
        client: dacapo_security::client_crypto(identity),
        server: dacapo_security::server_crypto(identity),
        keys: EndpointKeys { reset: keys.reset.clone(), token: keys.token.clone() },
        calendar: None,
        random: random.fork(),
    };
    (crypto, keys)
}

/// The addresses to listen on when nothing else is said: loopback, of both families where there are
/// two; with port 0 of IPv4 only, because the system would choose two ports.
#[must_use]
pub fn loopback(port: u16) -> Vec<Address> {
    let mut addrs = vec![Address::from((Ipv4Addr::LOCALHOST, port))];
    let six = Address::from((Ipv6Addr::LOCALHOST, port));
    if port != 0 && std::net::UdpSocket::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))).is_ok() {
        addrs.push(six);
    }
    addrs
}

/// The address of `HOST` or `HOST:PORT`, `[::1]` or `[fe80::1%eth0]:PORT`; IPv4 first where a name
/// has both.
///
/// # Errors
/// [`Code::Unreachable`] with what is wrong.
pub fn resolve(host: &str) -> Result<SocketAddr, Error> {
    resolve_at(host, PORT)
}

/// The same, at this port where none is said.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_at(host: &str, port: u16) -> Result<SocketAddr, Error> {
    let unreachable = |text: String| Error::new(Code::Unreachable, text);
    match host.parse::<Place>() {
        Ok(place) => return Ok(place.addr(port)),
        // It may be a name.
        Err(PlaceError::NotAddress) => {}
        Err(error) => return Err(unreachable(format!("{host}: {error}"))),
    }
    let with_port = |text: &str| text.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let found = match host.rsplit_once(':') {
        None => with_port(&format!("{host}:{port}")),
        Some((_, port)) if port.parse::<u16>().is_ok() => with_port(host),
        Some(_) => {
            let text = "no address that a transport here reads; expected HOST or HOST:PORT";
            return Err(unreachable(format!("{host}: {text}")));
        }
    };
    let addrs = found.map_err(|error| unreachable(format!("{host}: {error}")))?;
    let four = addrs.iter().find(|addr| addr.is_ipv4());
    four.or(addrs.first()).copied().ok_or_else(|| unreachable(format!("{host}: no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_named_or_those_that_there_are_are_told() {
        let of = |text: &str| HostConfig::default().controlled_by(text).map(|it| it.controller);
        assert_eq!((of(""), of("reserved")), (Ok(None), Ok(Some("reserved"))));
        let error = of("cubik").unwrap_err().text;
        let is_told = error.starts_with("DACAPO_CONTROLLER: ") && error.contains("\"cubic\"?");
        assert!(is_told && error.contains("\"reserved\""), "{error}");
    }

    #[test]
    fn each_help_of_the_kernel_can_be_done_without_and_nothing_else() {
        let of = |text: &str| {
            HostConfig::default().without(text).map(|it| (it.sockets.gso, it.sockets.gro))
        };
        assert_eq!(of(""), Ok((true, true)));
        assert_eq!(of("no-gso"), Ok((false, true)));
        assert_eq!(of(" no-gro , no-gso,"), Ok((false, false)));
        let error = of("no-gso,gro").unwrap_err();
        assert!(error.text.contains("\"gro\"") && error.text.contains("no-gro"), "{error}");
    }
}
