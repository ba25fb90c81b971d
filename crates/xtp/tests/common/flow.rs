//! A stream of which more is always to be sent, between the ends of a [`World`].

use super::world::{World, address};
use dacapo_base::Time;
use dacapo_xtp::wire::Limits;
use dacapo_xtp::{ContextId, Message, Mode, Open, Read};

/// A sender that always has more, and a receiver that reads what comes.
pub struct Flow {
    /// The sender's name for it.
    pub id: ContextId,
    piece: Vec<u8>,
    got: u64,
    /// The receiver's name for it.
    pub far: Option<ContextId>,
}

impl Flow {
    /// One that end 0 opens to port 7 of end 1, held to these limits.
    pub fn open(world: &mut World, limits: Limits) -> Self {
        let open = Open::stream(address(1), ([192, 0, 2, 2], 7).into(), address(0));
        let open = Open { mode: Mode { limits, ..open.mode }, ..open };
        let id = world.ends[0].open(world.now, &open).unwrap();
        Self { id, piece: vec![7; 64 << 10], got: 0, far: None }
    }

    fn work(&mut self, world: &mut World) {
        while world.ends[0].write(world.now, self.id, &Message::part(&self.piece)).unwrap() > 0 {}
        self.far = self.far.or_else(|| world.incoming(1));
        let Some(far) = self.far else { return };
        let mut into = [0; 16_384];
        while let Read::Data { len, .. } = world.ends[1].read(world.now, far, &mut into).unwrap() {
            self.got += len as u64;
        }
        world.sent.clear();
        world.events.iter_mut().for_each(Vec::clear);
    }

    fn run(&mut self, world: &mut World, until: Time) {
        self.work(world);
        while world.turn(until) {
            self.work(world);
        }
        world.now = until;
    }

    /// Goes on until `to`; how many bytes were read from `from` on.
    pub fn read_between(&mut self, world: &mut World, from: Time, to: Time) -> u64 {
        self.run(world, from);
        let before = self.got;
        self.run(world, to);
        self.got - before
    }
}
