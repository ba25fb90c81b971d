//! Sessions by the hundred thousand, one after the other, and set-ups that come to nothing.
//!
//! ```text
//!   one thread:  client Host <-- loopback --> server Host
//!   good:    JOIN … one unit … CLOSE     bad:  a name that there is not, a publisher that refuses,
//!                                              a client that is gone in the middle
//! ```
//!
//! A label is not given out again for two minutes and there are 65,536, so a core sets up at most
//! 546 flows a second for long; good sessions go a little slower, and the client connects anew now
//! and then, because one peer gets an eighth of the labels.
//!
//! Invariant: when everything has ended neither core has a session.

use super::ports::{Arrivals, Supply};
use super::station::{Course, LONG, NAME, Publish};
use crate::fault::Scale;
use dacapo::Host;
use dacapo_base::Address;
use dacapo_core::{
    Code, Command, CoreEvent, Done, Error, JoinParams, JoinRequest, PeerId, Port, SessionId,
    SessionProvider,
};
use dacapo_heap::measure;
use dacapo_security::Identity;
use dacapo_wire::session::FlowOffer;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sessions that are set up at a time.
const AT_ONCE: usize = 32;

/// Good sessions in a second, at most.
const PER_SECOND: f64 = 500.0;

/// Of bad set-ups every so manieth is that of a client that is gone in the middle.
const VANISH_EVERY: u64 = 100;

/// After so many sessions the client connects anew: there are 32,768 labels for one peer.
const PER_PEER: u64 = 1_000;

/// What is closed is gone after so long.
const LINGER: Duration = Duration::from_millis(1_500);

/// Labels of sessions that are over are kept for so long.
const QUARANTINE: Duration = Duration::from_secs(121);

/// A name that nobody serves, and one that is refused.
const NO_NAME: &str = "nothing";
const REFUSED: &str = "refused";

/// What is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Sessions that run and end.
    Good,
    /// Set-ups that come to nothing.
    Bad,
}

/// How much a core and the process have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Bytes on the heap of the server's core and of the client's, without packet memory.
    pub heap: [i64; 2],
    /// Bytes of packet memory of both; what is free in it is kept for use again.
    pub pool: [usize; 2],
    /// Descriptors of the process.
    pub fds: usize,
    /// Threads of the process.
    pub threads: usize,
}

impl Held {
    fn now(pair: &mut Pair) -> Self {
        let count = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
        let (fds, threads) = (count("/proc/self/fd"), count("/proc/self/task"));
        let of = |end: &mut Weighed| {
            let pool = end.host.reactor().core().pool().stats().bytes;
            (end.live.saturating_sub_unsigned(pool as u64), pool)
        };
        let (server, client) = (of(&mut pair.server), of(&mut pair.client));
        Self { heap: [server.0, client.0], pool: [server.1, client.1], fds, threads }
    }

    /// What each core has more than before, the larger of the two, bytes.
    #[must_use]
    pub fn grown_since(&self, before: &Self) -> i64 {
        let grown = self.heap.iter().zip(before.heap).map(|(after, before)| after - before);
        grown.max().unwrap_or(0)
    }

    /// The same of packet memory.
    #[must_use]
    pub fn pool_grown_since(&self, before: &Self) -> i64 {
        let grown = self.pool.iter().zip(before.pool);
        grown.map(|(after, before)| *after as i64 - before as i64).max().unwrap_or(0)
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Churned {
    /// How many there were.
    pub count: u64,
    /// Of them, clients that were gone in the middle.
    pub vanished: u64,
    /// After a tenth of them.
    pub early: Held,
    /// After all of them.
    pub late: Held,
    /// After the labels were free again, in the full form.
    pub rested: Option<Held>,
    /// Processor time of both ends and everything between, for each.
    pub cost: Duration,
}

/// A host and what is on the heap because of it.
struct Weighed {
    host: Host,
    live: i64,
}

impl Weighed {
    fn new(who: &Identity) -> Result<Self, String> {
        let (host, used) = measure(|| Host::with_identity(who.clone()));
        Ok(Self { host: host.map_err(|error| error.to_string())?, live: used.live_bytes })
    }

    /// Whatever is done with the host is weighed; what it gives is dropped in here, or is not
    /// weighed when it goes.
    fn with<T>(&mut self, work: impl FnOnce(&mut Host) -> T) -> T {
        let (result, used) = measure(|| work(&mut self.host));
        self.live += used.live_bytes;
        result
    }

    /// The next event and what is made of it, or a turn when there is none.
    fn turn<T>(
        &mut self,
        handle: impl FnOnce(&mut Host, CoreEvent) -> Result<T, Error>,
    ) -> Result<Option<T>, String> {
        let turned = self.with(|host| match host.reactor().poll_event() {
            Some(event) => handle(host, event).map(Some),
            None => {
                let turned = host.reactor().turn(Duration::ZERO);
                turned.map_err(|error| Error::new(Code::System, error.to_string()))?;
                Ok(None)
            }
        });
        turned.map_err(|error| error.to_string())
    }
}

/// What an event of the client means to the pair; it holds nothing that lies on the heap.
enum Told {
    Peer(PeerId),
    Ended(Option<Code>),
    Nothing,
}

/// Refuses everybody.
struct Refuse;

impl SessionProvider for Refuse {
    fn offer(&mut self, _: &JoinRequest, _: &[FlowOffer]) -> Result<Vec<FlowOffer>, Error> {
        Err(Error::new(Code::Refused, "nobody gets in"))
    }

    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Err("nobody gets in".into())
    }
}

/// Both ends, and what goes on between them.
struct Pair {
    who: Identity,
    server: Weighed,
    client: Weighed,
    at: Address,
    peer: Option<PeerId>,
    arrivals: Arc<Arrivals>,
    course: Course,
    open: usize,
    ended: u64,
    wrong: Option<String>,
}

impl Pair {
    fn new() -> Result<Self, String> {
        let told = |error: Error| error.to_string();
        let who = Identity::generate().map_err(|error| error.to_string())?;
        let (mut server, mut client) = (Weighed::new(&who)?, Weighed::new(&who)?);
        let supply = Supply { len: 64, every: Duration::ZERO, count: 1 };
        let course = Course { supply, ..Course::ticking() };
        let arrivals = Arc::<Arrivals>::default();
        let at = server.with(|host| {
            host.listen(&[Address::from((Ipv4Addr::LOCALHOST, 0))])?;
            let core = host.reactor().core();
            core.publish(course.spec(NAME), Box::new(Publish(course, Arc::clone(&arrivals))))?;
            core.publish(course.spec(REFUSED), Box::new(Refuse))?;
            Ok(host.listening().first().copied())
        });
        let at = at.map_err(told)?.ok_or("the server listens nowhere")?;
        client.with(|host| host.connect(at)).map_err(told)?;
        let mut pair = Self {
            who,
            server,
            client,
            at,
            peer: None,
            arrivals,
            course,
            open: 0,
            ended: 0,
            wrong: None,
        };
        pair.until("a peer", |pair| pair.peer.is_some())?;
        Ok(pair)
    }

    /// Turns until something is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while !is_so(self) {
            self.turn()?;
            if begun.elapsed() > LONG {
                return Err(format!("{what}: did not come; {} open", self.open));
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), String> {
        let mut is_idle = true;
        while self.server.turn(|_, _| Ok(()))?.is_some() {
            is_idle = false;
        }
        while let Some(told) = self.client_turn()? {
            is_idle = false;
            self.note(told);
        }
        if is_idle {
            std::thread::sleep(Duration::from_micros(20));
        }
        self.wrong.take().map_or(Ok(()), Err)
    }

    fn client_turn(&mut self) -> Result<Option<Told>, String> {
        let (course, arrivals) = (self.course, &self.arrivals);
        self.client.turn(|host, event| {
            let now = host.reactor().now();
            let core = host.reactor().core();
            match event {
                CoreEvent::Offered { session, .. } => {
                    core.answer(now, session, vec![Some(course.port(false, arrivals))])?;
                }
                CoreEvent::Ready { session } => {
                    let refused = core.status(session).into_iter().find_map(|flow| flow.refused);
                    refused.map_or(Ok(()), Err)?;
                    core.handle_command(now, Command::Activate(session))?;
                }
                CoreEvent::FlowEnded { session, ledger, .. } if ledger.closes() => {
                    core.handle_command(now, Command::Close(session))?;
                }
                CoreEvent::FlowEnded { ledger, .. } => {
                    return Err(Error::new(Code::Internal, format!("{ledger:?}")));
                }
                CoreEvent::PeerLost { error, .. } if error.code != Code::Closed => {
                    return Err(error);
                }
                CoreEvent::PeerOpen { peer } => return Ok(Told::Peer(peer)),
                CoreEvent::SessionEnded { error, .. } => {
                    return Ok(Told::Ended(error.map(|error| error.code)));
                }
                _ => {}
            }
            Ok(Told::Nothing)
        })
    }

    fn note(&mut self, told: Told) {
        match told {
            Told::Nothing => {}
            Told::Peer(peer) => self.peer = Some(peer),
            Told::Ended(code) => {
                self.open -= 1;
                self.ended += 1;
                let is_meant = |code: Option<Code>| {
                    matches!(code, None | Some(Code::NotServed | Code::Refused))
                };
                if !is_meant(code) {
                    self.wrong = Some(format!("session {}: {code:?}", self.ended));
                }
            }
        }
    }

    fn join(&mut self, name: &str) -> Result<SessionId, String> {
        let peer = self.peer.ok_or("no peer")?;
        self.open += 1;
        let joined = self.client.with(|host| {
            let now = host.reactor().now();
            host.reactor()
                .core()
                .handle_command(
                    now,
                    Command::Join { peer, name: name.into(), params: JoinParams::default() },
                )
                .and_then(Done::session)
        });
        joined.map_err(|error| error.to_string())
    }

    /// The client says goodbye and connects anew.
    fn connect_anew(&mut self) -> Result<(), String> {
        self.until("the end of all sessions", |pair| pair.open == 0)?;
        let (peer, at) = (self.peer.take().ok_or("no peer")?, self.at);
        let connected = self.client.with(|host| {
            let now = host.reactor().now();
            let _ = host.reactor().core().handle_command(now, Command::Disconnect(peer));
            host.reactor().flush(Duration::from_millis(100));
            host.connect(at)
        });
        connected.map_err(|error| error.to_string())?;
        self.until("a peer", |pair| pair.peer.is_some())
    }

    /// A client begins a set-up and is gone without a word when its offer is there.
    fn vanish(&mut self) -> Result<(), String> {
        let told = |error: Error| error.to_string();
        let mut client = Weighed::new(&self.who)?;
        client.with(|host| host.connect(self.at)).map_err(told)?;
        let begun = Instant::now();
        while begun.elapsed() < LONG {
            self.turn()?;
            let offered = client.turn(|host, event| match event {
                CoreEvent::PeerOpen { peer } => {
                    let now = host.reactor().now();
                    let joined = host
                        .reactor()
                        .core()
                        .handle_command(
                            now,
                            Command::Join {
                                peer,
                                name: NAME.into(),
                                params: JoinParams::default(),
                            },
                        )
                        .and_then(Done::session);
                    joined.map(|_| false)
                }
                CoreEvent::PeerLost { error, .. } => Err(error),
                event => Ok(matches!(event, CoreEvent::Offered { .. })),
            })?;
            if offered == Some(true) {
                return Ok(());
            }
        }
        Err("a client was not offered anything".into())
    }

    fn sessions(&mut self) -> usize {
        self.server.with(|host| host.reactor().core().sessions().count())
            + self.client.with(|host| host.reactor().core().sessions().count())
    }

    /// One more of what is asked for; true when its client was gone in the middle.
    fn one(&mut self, what: What, number: u64) -> Result<bool, String> {
        match what {
            What::Good => {
                if number.is_multiple_of(PER_PEER) {
                    self.connect_anew()?;
                }
                self.join(NAME).map(|_| false)
            }
            What::Bad if number.is_multiple_of(VANISH_EVERY) => self.vanish().map(|()| true),
            What::Bad => {
                self.join(if number.is_multiple_of(2) { NO_NAME } else { REFUSED }).map(|_| false)
            }
        }
    }

    fn drained(&mut self) -> Result<(), String> {
        self.until("the end of all sessions", |pair| pair.open == 0 && pair.sessions() == 0)?;
        self.until("the return of all packets", |pair| {
            let views = |end: &mut Weighed| end.host.reactor().core().pool().live_views();
            views(&mut pair.server) + views(&mut pair.client) == 0
        })?;
        // A transport lingers for a second when its peer is gone.
        let begun = Instant::now();
        self.until("the end of transports", |_| begun.elapsed() > LINGER)?;
        // Only the connection in use is left when those of clients that are gone are given up.
        self.until("the end of connections", |pair| {
            pair.server.with(|host| host.reactor().core().connection_count()) <= 1
        })
    }
}

/// How many a scale runs.
#[must_use]
pub fn count(scale: &Scale) -> u64 {
    let seeds = scale.seeds(2_000, 100_000);
    seeds.end - seeds.start
}

/// Runs them.
///
/// # Errors
/// What broke, or what does not end.
pub fn run(scale: &Scale, what: What) -> Result<Churned, String> {
    let mut pair = Pair::new()?;
    let mut seen = Churned { count: count(scale), ..Churned::default() };
    let mut line = scale.progress().begin(seen.count);
    let (begun, cpu) = (Instant::now(), dacapo_sys::process::cpu_time());
    for number in 1..=seen.count {
        let is_due = |begun: Instant| begun.elapsed().as_secs_f64() * PER_SECOND >= number as f64;
        pair.until("an end of sessions", |pair| {
            pair.open < AT_ONCE && (what == What::Bad || is_due(begun))
        })?;
        seen.vanished += u64::from(pair.one(what, number)?);
        pair.turn()?;
        if number == seen.count.div_ceil(10) {
            pair.drained()?;
            seen.early = Held::now(&mut pair);
        }
        line.show(number);
    }
    pair.drained()?;
    seen.late = Held::now(&mut pair);
    let spent = dacapo_sys::process::cpu_time().saturating_sub(cpu);
    seen.cost = spent / u32::try_from(seen.count.max(1)).unwrap_or(u32::MAX);
    if scale.is_full() && what == What::Good {
        let rested = Instant::now();
        while rested.elapsed() < QUARANTINE {
            pair.turn()?;
        }
        // Whoever asks for a label has those that are old enough taken out.
        pair.join(NAME)?;
        pair.drained()?;
        seen.rested = Some(Held::now(&mut pair));
    }
    drop(line);
    Ok(seen)
}
