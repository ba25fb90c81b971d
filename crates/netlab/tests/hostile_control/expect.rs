//! What is looked at after a case: how its session or connection ended, and that nobody else has
//! noticed.
//!
//! Invariants, checked by [`Arena::finish`] after every case: the honest session has lost nothing
//! and kept its rate, others can still join, both ledgers close, and nothing is left of the raw
//! peer: no session, no view, no connection. What the core sent to it is bounded by what it sent.

use crate::arena::Arena;
use crate::common::ms;
use dacapo_core::Code;
use dacapo_wire::message::Message;
use dacapo_wire::session::{Control, FLOW_ALL, MODULE_ACCESS};

/// The request number of the question whether a session goes on.
const PROOF: u32 = 0xFFFF_0001;

/// Datagrams of control and probes that a core may send for each that it gets, for each second that
/// passes (life signs), and besides.
const ANSWERS_PER_DATAGRAM: u64 = 4;
const ANSWERS_PER_SEC: u64 = 60;
const ANSWERS_BESIDES: u64 = 60;

impl Arena {
    /// The session has ended with this code, and the raw peer was told so.
    pub fn expect_end(&mut self, code: Code) {
        self.run(40);
        assert_eq!(self.ended(), Some(Some(code)), "how the session ended");
        self.expect_told(code);
        assert!(self.raw.lost.is_none(), "the connection is left: {:?}", self.raw.lost);
    }

    fn expect_told(&mut self, code: Code) {
        let read = self.raw.streams.get(&self.stream).expect("the stream");
        let told = read.records.iter().any(|record| match record {
            Message::Close(close) => close.code == code as u16,
            Message::Refuse(refuse) => refuse.code == code as u16,
            _ => false,
        });
        assert!(told || read.ended == Some(Some(code as u64)), "told {:?}", read.ended);
    }

    /// No session has begun: the stream is reset with this code.
    pub fn expect_reset(&mut self, code: Code) {
        self.run(40);
        assert_eq!(self.ended(), None, "no session");
        let read = self.raw.streams.get(&self.stream).expect("the stream");
        assert_eq!(read.ended, Some(Some(code as u64)), "how the stream ended");
        assert_eq!(self.lab.world.core(self.core).sessions().count(), 1, "no session");
        assert!(self.raw.lost.is_none(), "the connection is left: {:?}", self.raw.lost);
    }

    /// The connection has ended with this code.
    pub fn expect_lost(&mut self, code: Code) {
        self.run(40);
        assert_eq!(self.raw.closed_with(), Some(code), "{:?}", self.raw.lost);
    }

    /// The session goes on: a question about it is answered.
    pub fn expect_goes_on(&mut self) {
        self.run(40);
        assert!(self.raw.lost.is_none(), "the connection is lost: {:?}", self.raw.lost);
        assert_eq!(self.ended(), None, "the session ended");
        let (flow, module) = (FLOW_ALL, MODULE_ACCESS);
        self.say(Control { request: PROOF, flow, epoch: 0, module, payload: vec![1, 2] });
        self.run(200);
        let is_proof =
            |it: &Message| matches!(it, Message::ControlAnswer(answer) if answer.request == PROOF);
        let answers = self.take_all().iter().filter(|it| is_proof(it)).count();
        assert_eq!(answers, 1, "the session goes on");
    }

    /// The connection goes on: a LIST is answered.
    pub fn expect_open(&mut self) {
        self.run(40);
        assert!(self.raw.lost.is_none(), "the connection is lost: {:?}", self.raw.lost);
        let list = dacapo_wire::hub::List { request: PROOF };
        self.raw.say(self.hub, list);
        self.run(40);
        let mut answers = 0;
        while let Some(message) = self.raw.next(self.hub) {
            let is_proof = matches!(message, Message::Listing(it) if it.request == PROOF);
            answers += usize::from(is_proof);
        }
        assert_eq!(answers, 1, "the connection goes on");
    }

    /// The others have not noticed, nothing is left of the raw peer, and it was not flooded.
    pub fn finish(mut self) {
        self.check_answers();
        let now = self.lab.now();
        self.raw.close(now);
        self.run(60);
        let (honest, lab) = (self.honest.clone(), &mut self.lab);
        assert_eq!(lab.ended(lab.participant, honest.here), None, "the honest session");
        let peer = lab.dial();
        let other = lab.set_up(peer, "down");
        lab.activate(other.here);
        lab.run(ms(100));
        assert!(other.numbers(0).len() > 30, "others can join");
        for session in [&honest, &other] {
            lab.close(lab.participant, session.here);
            let (here, there) = lab.ledgers(session, 0, ms(2_000));
            assert!(here.closes() && there.closes(), "{here:?} {there:?}");
            assert_eq!((here.lost, there.unknown), (0, 0), "{here:?} {there:?}");
            assert_eq!((here.delivered, here.duplicates), (here.sent, 0), "{here:?}");
            assert!(session.numbers(0).iter().copied().eq(0..here.sent), "in order, each once");
        }
        let ran = lab.now().as_nanos() / 1_000_000 - self.begun_ms;
        let sent = honest.numbers(0).len() as u64;
        assert!(2 * sent + 400 > ran, "{sent} honest units in {ran} ms");
        lab.check_empty();
        lab.run(ms(1_000));
        let count = lab.world.core(self.core).connection_count();
        assert_eq!(count, 1, "connections are left");
    }

    /// No answer storm: what came back by control and probes is bounded by what was sent.
    fn check_answers(&mut self) {
        let secs = (self.lab.now().as_nanos() / 1_000_000 - self.begun_ms).div_ceil(1_000);
        let probes = self.raw.datagrams.iter().filter(|it| it.first() == Some(&0x81)).count();
        let answers = self.raw.heard.0 + probes as u64;
        let most = ANSWERS_PER_DATAGRAM * self.raw.sent.0
            + ANSWERS_PER_SEC * secs
            + ANSWERS_BESIDES
            + self.extra_answers;
        assert!(answers <= most, "{answers} answers to {} datagrams in {secs} s", self.raw.sent.0);
    }
}
