//! One creator and any number of sessions with it, over links of the emulator, in virtual time.
#![allow(dead_code, reason = "each test file uses its part")]

use dacapo_base::Time;
use dacapo_core::{
    Command, CoreConfig, CoreEvent, DialParams, Done, Error, JoinParams, Ledger, PeerId, Port,
    SessionId, SessionProvider, SessionSpec,
};
use dacapo_lift::{Catalogue, TransportSpec};
use dacapo_netlab::{NodeId, World};
use dacapo_wire::session::FlowOffer;
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes the ports with which an offer is answered.
pub type Ports = Box<dyn FnOnce(&[FlowOffer]) -> Vec<Option<Port>>>;

/// The modules and transports that exist, without the module of this name.
pub fn catalogue_without(name: &str) -> Catalogue {
    let all = dacapo::catalogue();
    let unwanted = all.by_name(name).unwrap().spec.id;
    all.only(|id| id != unwanted, |_| true)
}

/// What a host has that speaks no QUIC for flows.
pub fn without_quic(catalogue: &Catalogue) -> Catalogue {
    let is_other = |id: u16| catalogue.transport(id).is_some_and(|it| !is_quic(it));
    catalogue.only(|_| true, is_other)
}

fn is_quic(spec: &TransportSpec) -> bool {
    spec.name.starts_with("quic")
}

fn config(catalogue: Catalogue) -> CoreConfig {
    let mut config = CoreConfig::new(catalogue);
    config.boot = [1; 16];
    config
}

/// A session as its participant sees it.
pub struct Viewer {
    pub node: NodeId,
    peer: PeerId,
    wishes: JoinParams,
    ports: Option<Ports>,
    session: Option<SessionId>,
    pub offers: Vec<FlowOffer>,
    pub began: Option<Time>,
    pub ledgers: BTreeMap<usize, Ledger>,
    pub hashes: BTreeMap<usize, Option<bool>>,
    /// How it ended, once it has.
    pub end: Option<Option<Error>>,
}

/// A creator that serves one session, and those who have joined.
pub struct Lab {
    pub world: World,
    pub creator: NodeId,
    pub viewers: Vec<Viewer>,
    name: String,
}

impl Lab {
    pub fn new(
        seed: u64,
        link: &str,
        spec: SessionSpec,
        publisher: Box<dyn SessionProvider>,
    ) -> Self {
        let mut world = World::new(seed, link.parse().unwrap());
        let creator = world.add(config(dacapo::catalogue()));
        let name = spec.name.clone();
        world.core(creator).publish(spec, publisher).unwrap();
        Self { world, creator, viewers: Vec::new(), name }
    }

    /// Somebody new joins.
    pub fn join(&mut self, wishes: JoinParams, ports: Ports) -> usize {
        self.join_with(dacapo::catalogue(), wishes, ports)
    }

    /// The same; it has these modules and transports.
    pub fn join_with(&mut self, catalogue: Catalogue, wishes: JoinParams, ports: Ports) -> usize {
        let node = self.world.add(config(catalogue));
        self.world.dials(node);
        let (now, address) = (self.world.now(), self.world.address(self.creator));
        let peer = self
            .world
            .core(node)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .unwrap();
        self.viewers.push(viewer(node, peer, wishes, ports));
        self.viewers.len() - 1
    }

    /// Somebody who has joined joins once more, over the same connection.
    pub fn join_again(&mut self, viewer_of: usize, wishes: JoinParams, ports: Ports) -> usize {
        let (node, peer) = (self.viewers[viewer_of].node, self.viewers[viewer_of].peer);
        let mut again = viewer(node, peer, wishes.clone(), ports);
        let now = self.world.now();
        again.session = Some(
            self.world
                .core(node)
                .handle_command(
                    now,
                    Command::Join { peer, name: self.name.clone(), params: wishes },
                )
                .and_then(Done::session)
                .unwrap(),
        );
        self.viewers.push(again);
        self.viewers.len() - 1
    }

    /// Runs so long.
    pub fn run(&mut self, ms: u64) {
        self.wait(ms, |_| false);
    }

    /// Runs until `done`, at most so long; whether it was done.
    pub fn wait(&mut self, ms_max: u64, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = self.world.now() + Duration::from_millis(ms_max);
        loop {
            self.turn();
            if done(self) {
                return true;
            }
            if self.world.now() >= until {
                return false;
            }
            let mut begun = false;
            self.world.run(until, |_| std::mem::replace(&mut begun, true));
        }
    }

    /// Runs until a session has the accounts of so many flows.
    pub fn finish(&mut self, viewer: usize, flows: usize, ms_max: u64) {
        let done = self.wait(ms_max, |lab| lab.viewers[viewer].ledgers.len() == flows);
        let it = &self.viewers[viewer];
        assert!(done, "viewer {viewer} did not end: {:?} {:?}", it.ledgers, it.end);
    }

    /// Why a session that cannot be had is refused.
    pub fn refusal(&mut self, viewer: usize) -> Error {
        let ended = self.wait(10_000, |lab| lab.viewers[viewer].end.is_some());
        assert!(ended, "viewer {viewer} was not refused: {:?}", self.viewers[viewer].offers);
        self.viewers[viewer].end.clone().unwrap().expect("a reason")
    }

    /// The graph and transport of a flow, as the modules' names.
    pub fn chain(&self, viewer: usize, flow: usize) -> String {
        let (offer, all) = (&self.viewers[viewer].offers[flow], dacapo::catalogue());
        let modules =
            offer.graph.nodes.iter().map(|node| all.by_id(node.module).unwrap().spec.name);
        let transport = std::iter::once(all.transport(offer.transport).unwrap().name);
        modules.chain(transport).collect::<Vec<_>>().join(" ! ")
    }

    pub fn close(&mut self, viewer: usize) {
        let (now, it) = (self.world.now(), &self.viewers[viewer]);
        self.world.core(it.node).handle_command(now, Command::Close(it.session.unwrap())).unwrap();
        assert!(self.wait(10_000, |lab| lab.viewers[viewer].end.is_some()), "it did not close");
        assert_eq!(self.viewers[viewer].end, Some(None));
    }

    fn turn(&mut self) {
        while self.world.poll_event(self.creator).is_some() {}
        let mut nodes: Vec<NodeId> = self.viewers.iter().map(|viewer| viewer.node).collect();
        nodes.dedup();
        for node in nodes {
            while let Some(event) = self.world.poll_event(node) {
                self.handle(node, event);
            }
        }
    }

    fn of(&mut self, node: NodeId, session: SessionId) -> &mut Viewer {
        let its = |viewer: &&mut Viewer| viewer.node == node && viewer.session == Some(session);
        self.viewers.iter_mut().find(its).expect("a session of ours")
    }

    fn handle(&mut self, node: NodeId, event: CoreEvent) {
        let now = self.world.now();
        match event {
            CoreEvent::PeerOpen { peer } => {
                let its = |viewer: &&mut Viewer| viewer.node == node && viewer.session.is_none();
                let viewer = self.viewers.iter_mut().find(its).expect("it waits for its peer");
                let core = self.world.core(node);
                let joined = core
                    .handle_command(
                        now,
                        Command::Join {
                            peer,
                            name: self.name.clone(),
                            params: viewer.wishes.clone(),
                        },
                    )
                    .and_then(Done::session);
                viewer.session = Some(joined.unwrap());
            }
            CoreEvent::Offered { session, flows, .. } => {
                let viewer = self.of(node, session);
                let ports = viewer.ports.take().expect("one offer")(&flows);
                viewer.offers = flows;
                self.world.core(node).answer(now, session, ports).unwrap();
            }
            CoreEvent::Ready { session } => {
                _ = self.world.core(node).handle_command(now, Command::Activate(session)).unwrap();
            }
            CoreEvent::Active { session } => self.of(node, session).began = Some(now),
            CoreEvent::FlowEnded { session, flow, ledger, hash, .. } => {
                let viewer = self.of(node, session);
                viewer.ledgers.insert(flow, *ledger);
                viewer.hashes.insert(flow, hash);
            }
            CoreEvent::SessionEnded { session, error } => {
                self.of(node, session).end = Some(error);
            }
            CoreEvent::PeerLost { error, .. } => panic!("{node:?}: {error}"),
            _ => {}
        }
    }
}

fn viewer(node: NodeId, peer: PeerId, wishes: JoinParams, ports: Ports) -> Viewer {
    Viewer {
        node,
        peer,
        wishes,
        ports: Some(ports),
        session: None,
        offers: Vec::new(),
        began: None,
        ledgers: BTreeMap::new(),
        hashes: BTreeMap::new(),
        end: None,
    }
}
