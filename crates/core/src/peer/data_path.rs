//! [`DataPath`]: the path of data to a peer: where its data port is, and what is known of the way.
//!
//! ```text
//!   question, from where ---> candidate ---> our own question there ---> answered: data goes there
//!   what was sent, EMSGSIZE, ICMP -> prober -> a length -> flows cut their next unit so
//! ```
//!
//! Invariants: a question or answer whose tag is not the peer's changes nothing; an answer is no
//! longer than its question; data goes to an address that has answered; what the system or the
//! network says of lengths changes nothing by itself.

use crate::flow::{FlowSeen, PathTimes};
use dacapo_base::{Address, Ecn, Time};
use dacapo_path::{Answer, Came, ClockOffset, ControllerEntry, Heard, Life, Path, Question, Sent};
use dacapo_wire::probe::{self, Count, Probe};
use sha2::{Digest, Sha256};

/// The token of a connection: it names path probes and tags them, and is never sent with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeKey {
    token: [u8; 16],
}

impl ProbeKey {
    pub fn new(token: [u8; 16]) -> Self {
        Self { token }
    }

    pub fn token(self) -> [u8; 16] {
        self.token
    }

    /// That of a further path, by its place.
    pub fn further(self, place: usize) -> Self {
        let half =
            |number: usize| self.hash(b"further", &[place as u8, number as u8]).to_be_bytes();
        let (mut token, halves) = ([0; 16], [half(0), half(1)]);
        token.iter_mut().zip(halves.as_flattened()).for_each(|(to, byte)| *to = *byte);
        Self { token }
    }

    /// What names the connection in clear.
    pub fn connection(self) -> u64 {
        self.hash(b"connection", &[])
    }

    /// The tag of a probe.
    pub fn tag(self, probe: &Probe) -> u64 {
        self.hash(b"probe", &probe.covered())
    }

    /// The tag of a count in a probe.
    pub fn count_tag(self, probe: &Probe, count: &Count) -> u64 {
        self.hash(b"count", &[probe.tag.to_be_bytes(), count.covered()].concat())
    }

    fn hash(self, what: &[u8], bytes: &[u8]) -> u64 {
        let digest = Sha256::new()
            .chain_update(self.token)
            .chain_update(what)
            .chain_update(bytes)
            .finalize();
        digest.iter().take(8).fold(0, |word, &byte| (word << 8) | u64::from(byte))
    }
}

/// What an answer has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Data goes to where it came from, from now on; and went there before.
    pub moved_from: Option<Option<Address>>,
    /// What it says of the path.
    pub heard: Heard,
}

pub(crate) struct DataPath {
    /// What probes of this connection are named and tagged with.
    key: ProbeKey,
    /// Where the peer's data port is, once known.
    remote: Option<Address>,
    /// Where the dialer's newest question came from, and the first of our own that was asked there:
    /// its data port when one of those is answered from there.
    candidate: Option<(Address, u64)>,
    path: Path,
    /// The longest datagrams of which the flows were told.
    told_len: Option<usize>,
    /// The highest number of a question that the peer has asked.
    asked_max: Option<u64>,
    /// The peer reads the same monotonic clock.
    one_clock: bool,
    /// What has come of its flows by datagrams.
    came: Came,
}

impl DataPath {
    /// One that is not known, controlled so.
    pub fn new(now: Time, controller: &ControllerEntry) -> Self {
        Self {
            key: ProbeKey::default(),
            remote: None,
            candidate: None,
            path: Path::new(now, controller),
            told_len: None,
            asked_max: None,
            one_clock: false,
            came: Came { packets: 0, marked: 0 },
        }
    }

    /// The listener draws the key.
    pub fn set_key(&mut self, key: ProbeKey) {
        self.key = key;
    }

    pub fn key(&self) -> ProbeKey {
        self.key
    }

    /// The peer greets, and says whether it reads the same clock.
    pub fn set_one_clock(&mut self, one_clock: bool) {
        self.one_clock = one_clock;
    }

    pub fn is_one_clock(&self) -> bool {
        self.one_clock
    }

    /// The dialer opens the path to where it has dialed.
    pub fn open(&mut self, now: Time, remote: Address, key: ProbeKey) {
        (self.key, self.remote) = (key, Some(remote));
        self.path.probe(now, self.one_clock);
    }

    /// Where the peer's data port is, once known.
    pub fn remote(&self) -> Option<Address> {
        self.remote
    }

    /// The clock of the peer.
    pub fn clock(&self) -> Option<ClockOffset> {
        self.path.prober().map(|prober| *prober.offset())
    }

    /// What is controlled, and was measured.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Modules have seen more of it.
    pub fn handle_seen(&mut self, now: Time, seen: &FlowSeen) {
        if !seen.left.is_empty() {
            self.path.handle_seen(now, &seen.left);
        }
        self.path.handle_came(&seen.came);
    }

    /// How many bytes of all flows may leave now, of those that modules report about or not.
    #[inline]
    pub fn allowance(&mut self, now: Time, is_acknowledged: bool) -> usize {
        self.path.allowance(now, is_acknowledged)
    }

    /// A packet waits that may not leave, of a flow that modules report about or not.
    pub fn await_room(&mut self, is_acknowledged: bool) {
        self.path.await_room(is_acknowledged);
    }

    /// Whether packets that wait may leave now; once.
    pub fn poll_room(&mut self, now: Time) -> bool {
        self.path.handle_timeout(now);
        self.path.poll_room(now)
    }

    /// Whether it may be due earlier than it has said; once.
    #[inline]
    pub fn poll_earlier(&mut self) -> bool {
        self.path.poll_earlier()
    }

    pub fn times(&self) -> PathTimes {
        let Some(prober) = self.path.prober() else { return PathTimes::default() };
        let rtt = prober.rtt();
        let rtt = (rtt.smoothed().unwrap_or_default(), rtt.variation());
        PathTimes { is_lost: false, rtt: rtt.0, variation: rtt.1 }
    }

    pub fn datagram_len(&self, now: Time) -> Option<usize> {
        self.path.prober()?.datagram_len(now)
    }

    /// The longest datagrams, when the opening is over.
    pub fn settled_len(&self) -> Option<usize> {
        self.path.prober()?.settled_len()
    }

    /// It is asked about, and nothing has come.
    pub fn is_unanswered(&self, now: Time) -> bool {
        self.path.prober().is_some_and(|it| it.datagram_len(now).is_none())
    }

    /// Whether the peer lives, once it is known where to ask: `is_heard` when something else has
    /// come of it.
    pub fn watch(&mut self, now: Time, is_heard: bool) -> Option<Life> {
        self.remote?;
        self.path.watch(now, is_heard)
    }

    pub fn next_deadline(&self, now: Time) -> Option<Time> {
        let prober = self.path.prober().filter(|_| self.remote.is_some());
        prober.map(|prober| prober.next_deadline(now))
    }

    /// When its controller is due, or may let out what waits.
    pub fn due(&self, now: Time) -> Option<Time> {
        self.path.due(now)
    }

    /// This end did not run until now.
    pub fn shift(&mut self, now: Time) {
        self.path.shift(now);
    }

    /// So many packets of a flow have come, with a mark of congestion or without.
    #[inline]
    pub fn note_received(&mut self, packets: usize, is_marked: bool) {
        self.came.packets = self.came.packets.wrapping_add(packets as u32);
        if is_marked {
            self.came.marked = self.came.marked.wrapping_add(packets as u32);
        }
    }

    /// The congestion codepoint with which what leaves now does.
    #[inline]
    pub fn ecn(&self, is_acknowledged: bool) -> Ecn {
        self.path.ecn(is_acknowledged)
    }

    #[inline]
    pub fn handle_sent(&mut self, now: Time, sent: &Sent) {
        self.path.handle_sent(now, sent);
    }

    /// Datagrams are too long, somebody says, and perhaps how long they may be; it is tried out.
    pub fn handle_too_large(&mut self, now: Time, len: Option<usize>) {
        self.path.handle_too_large(now, len);
    }

    /// The next question is asked early, with others.
    pub fn ask_early(&mut self, now: Time) {
        self.path.ask_early(now);
    }

    /// Another way than before may be taken.
    pub fn handle_path_change(&mut self, now: Time) {
        self.path.handle_path_change(now);
    }

    /// The next question that is due.
    pub fn poll_question(&mut self, now: Time) -> Option<Question> {
        self.remote?;
        self.path.poll_question(now)
    }

    /// What the path takes, when that is not what the flows were told: before, and now.
    pub fn poll_len(&mut self) -> Option<(Option<usize>, usize)> {
        // Until the opening is over nothing is agreed.
        let len = self.settled_len()?;
        let told = self.told_len.replace(len);
        (told != Some(len)).then_some((told, len))
    }

    /// The peer asks, as the listener sees it when `is_listener`. A dialer's data port is where its
    /// newest question came from, when that address has answered one of ours: somebody else may
    /// have sent the question. It is asked once for each of its questions, with no more bytes: the
    /// question to ask. A listener has one port, and the dialer knows it.
    pub fn handle_question(
        &mut self,
        now: Time,
        is_listener: bool,
        from: Address,
        number: u64,
        len: usize,
    ) -> Option<Question> {
        // One that came before or was overtaken may be a copy that somebody else sends, so it
        // neither shows life nor moves the data path.
        let is_new = self.asked_max.is_none_or(|known| known < number);
        if !is_new {
            return None;
        }
        self.asked_max = Some(number);
        self.ask_early(now);
        if !is_listener || self.remote == Some(from) {
            return None;
        }
        Some(self.ask_at(now, from, len))
    }

    /// Asks at an address that is the peer's data port when this, or a later question there, is
    /// answered from there; no more bytes than `len`.
    pub fn ask_at(&mut self, now: Time, at: Address, len: usize) -> Question {
        let question = self.path.ask_at_most(now, self.one_clock, len);
        let since = self.candidate.filter(|(candidate, _)| *candidate == at);
        let since = since.map_or(question.number, |(_, since)| since);
        self.candidate = Some((at, since));
        question
    }

    /// It has answered, and was not silent for so long that it is lost.
    pub fn is_live(&self, now: Time) -> bool {
        let life = self.path.prober().filter(|_| self.remote.is_some()).map(|it| it.life(now));
        life == Some(Life::Alive)
    }

    /// Nothing was answered for longer than usual.
    pub fn is_silent(&self, now: Time) -> bool {
        self.path.prober().is_none_or(|prober| prober.is_silent(now))
    }

    /// An answer has come; `None` for one to nothing.
    pub fn handle_answer(&mut self, now: Time, from: Address, probe: &Probe) -> Option<Answered> {
        let (number, received, answered) = (probe.number, probe.received_ns, probe.answered_ns);
        let came = self.authentic_count(probe);
        let came = came.map(|it| Came { packets: it.packets, marked: it.marked });
        let answer = Answer { number, received, answered, came };
        let heard = self.path.handle_answer(now, &answer)?;
        let is_there =
            self.candidate.is_some_and(|(at, since)| at == from && probe.number >= since);
        let moved_from = is_there.then(|| self.move_to(now, from));
        Some(Answered { moved_from, heard })
    }

    /// What a probe has counted, if its sender has written that.
    fn authentic_count(&self, probe: &Probe) -> Option<Count> {
        probe.count.filter(|count| self.key.count_tag(probe, count) == count.tag)
    }

    /// A dialer's data port is there from now on; where it was.
    fn move_to(&mut self, now: Time, remote: Address) -> Option<Address> {
        self.candidate = None;
        let before = self.remote.replace(remote);
        if before.is_some() {
            self.path.move_to_another(now);
        }
        before
    }

    /// A question, as it is sent.
    pub fn write_question(&self, now: Time, question: Question) -> Vec<u8> {
        let probe = Probe {
            answer: false,
            size: question.len as u16,
            connection: self.key.connection(),
            number: question.number,
            asked_ns: now.as_nanos(),
            received_ns: 0,
            answered_ns: 0,
            tag: 0,
            count: None,
        };
        let left = Came { packets: self.path.sent_packets() as u32, marked: 0 };
        self.write(probe, Some(left), question.len)
    }

    /// The answer to a question of `len` bytes, as it is sent: not longer than the question; a
    /// full-size answer shows that the way back carries it too. To who counts it says how many
    /// packets have come.
    pub fn write_answer(&self, now: Time, probe: Probe, len: usize) -> Vec<u8> {
        let answer = Probe {
            answer: true,
            size: len.min(usize::from(u16::MAX)) as u16,
            received_ns: now.as_nanos(),
            answered_ns: now.as_nanos(),
            count: None,
            ..probe
        };
        let has_room = len >= probe::LEN + probe::COUNT_LEN;
        let is_counting = has_room && self.authentic_count(&probe).is_some();
        self.write(answer, is_counting.then_some(self.came), len)
    }

    fn write(&self, mut probe: Probe, counted: Option<Came>, len: usize) -> Vec<u8> {
        probe.tag = self.key.tag(&probe);
        probe.count = counted.map(|Came { packets, marked }| {
            // As it is read back.
            let count = Count { packets, marked: marked % probe::MARKED_RANGE, tag: 0 };
            Count { tag: self.key.count_tag(&probe, &count), ..count }
        });
        let mut bytes = Vec::with_capacity(len);
        probe.emit(len, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "192.0.2.1:1";
    const OTHER: &str = "192.0.2.2:1";

    fn at(address: &str) -> Address {
        address.parse().unwrap()
    }

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn unknown() -> DataPath {
        DataPath::new(ms(0), &dacapo_path::controllers::reserved::entry())
    }

    /// The listener's end of a path: it has a key, and knows nothing else.
    fn listening() -> DataPath {
        let mut path = unknown();
        path.set_key(ProbeKey::new([7; 16]));
        path
    }

    fn answer(path: &DataPath, question: Question) -> Probe {
        let bytes = path.write_question(ms(0), question);
        let asked = Probe::parse(&bytes).unwrap();
        Probe::parse(&path.write_answer(ms(1), asked, bytes.len())).unwrap()
    }

    #[test]
    fn data_goes_to_where_a_question_was_answered_not_to_where_one_came_from() {
        let mut path = listening();
        let question = path.handle_question(ms(0), true, at(ONE), 1, 1_200).unwrap();
        assert!(question.len <= 1_200, "no more bytes than it has sent");
        assert_eq!(path.remote(), None);
        let answer = answer(&path, question);
        let elsewhere = path.handle_answer(ms(2), at(OTHER), &answer).unwrap();
        assert_eq!((elsewhere.moved_from, path.remote()), (None, None));
        let question = path.handle_question(ms(3), true, at(ONE), 2, 1_200).unwrap();
        let answer = self::answer(&path, question);
        let answered = path.handle_answer(ms(4), at(ONE), &answer).unwrap();
        assert_eq!((answered.moved_from, path.remote()), (Some(None), Some(at(ONE))));
        assert!(path.handle_answer(ms(5), at(ONE), &answer).is_none(), "it answers nothing now");
    }

    #[test]
    fn a_copy_of_a_question_asks_for_nothing() {
        let mut path = listening();
        assert!(path.handle_question(ms(0), true, at(ONE), 5, 1_200).is_some());
        assert!(path.handle_question(ms(1), true, at(OTHER), 5, 1_200).is_none());
        assert!(path.handle_question(ms(1), true, at(OTHER), 4, 1_200).is_none());
        assert!(path.handle_question(ms(1), true, at(OTHER), 6, 1_200).is_some());
        let mut dialer = unknown();
        dialer.open(ms(0), at(ONE), ProbeKey::new([7; 16]));
        assert!(dialer.handle_question(ms(1), false, at(OTHER), 1, 1_200).is_none());
        assert_eq!(dialer.remote(), Some(at(ONE)), "a listener has one port");
    }

    #[test]
    fn a_length_is_told_once() {
        let mut path = listening();
        assert_eq!(path.poll_len(), None, "nothing is known");
        let question = path.handle_question(ms(0), true, at(ONE), 1, 1_200).unwrap();
        let answer = answer(&path, question);
        path.handle_answer(ms(1), at(ONE), &answer).unwrap();
        for step in 0..4_000 {
            let now = ms(2 + step);
            while let Some(question) = path.poll_question(now) {
                let answer = self::answer(&path, question);
                path.handle_answer(now, at(ONE), &answer);
            }
        }
        let (before, now) = path.poll_len().unwrap();
        assert_eq!((before, Some(now)), (None, path.settled_len()));
        assert_eq!(path.poll_len(), None);
    }

    #[test]
    fn who_counts_is_told_what_has_come_in_no_more_bytes_than_it_has_sent() {
        let mut path = listening();
        path.note_received(60, false);
        path.note_received(10, true);
        let question = Question { number: 3, len: 0, ecn: Ecn::NotEct };
        let asked = Probe::parse(&path.write_question(ms(1), question)).unwrap();
        assert_eq!(asked.count.map(|count| count.packets), Some(0), "nothing has left");
        let len = probe::LEN + probe::COUNT_LEN;
        let answered = |asked: Probe, len| path.write_answer(ms(2), asked, len);
        let bytes = answered(asked, len);
        assert_eq!(bytes.len(), len);
        let told = Probe::parse(&bytes).unwrap();
        let count = path.authentic_count(&told).unwrap();
        assert_eq!((count.packets, count.marked), (70, 10));
        let shorter = answered(asked, len - 1);
        assert!(shorter.len() < len && Probe::parse(&shorter).unwrap().count.is_none());
        // Who does not count, and who has not written the count, is answered as ever.
        let forged = asked.count.map(|count| Count { packets: 9, ..count });
        for count in [None, forged] {
            let bytes = answered(Probe { count, ..asked }, 1_200);
            let told = Probe::parse(&bytes).unwrap();
            assert_eq!((told.count, told.tag), (None, path.key().tag(&told)));
        }
        let altered = Probe { count: Some(Count { packets: 7, ..told.count.unwrap() }), ..told };
        assert_eq!(path.authentic_count(&altered), None);
        let other = Probe { count: told.count, ..asked };
        assert_eq!(path.authentic_count(&other), None, "it was written for another probe");
    }

    #[test]
    fn a_tag_depends_on_the_key_and_on_every_field() {
        let question = Question { number: 3, len: 64, ecn: Ecn::NotEct };
        let (one, mut other) = (listening(), listening());
        other.set_key(ProbeKey::new([8; 16]));
        let probe = Probe::parse(&one.write_question(ms(1), question)).unwrap();
        assert_eq!(one.key().tag(&probe), probe.tag);
        assert_ne!(other.key().tag(&probe), probe.tag);
        let later = Probe { asked_ns: probe.asked_ns + 1, ..probe };
        assert_ne!(one.key().tag(&later), probe.tag);
        assert_ne!(one.key().connection(), other.key().connection());
    }
}
