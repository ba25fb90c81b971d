//! A stream of which more is always to be sent, between the ends of a [`World`].

use super::world::World;
use dacapo_base::Time;
use dacapo_xtp::{ContextId, Message, Read};

/// A sender that always has more, and a receiver that reads what comes.
pub struct Flow {
    id: ContextId,
    piece: Vec<u8>,
    /// Bytes that were read.
    pub got: u64,
    /// The receiver's name for it.
    pub far: Option<ContextId>,
}

impl Flow {
    /// One that end 0 has opened.
    pub fn new(id: ContextId) -> Self {
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

    /// Goes on until then.
    pub fn run(&mut self, world: &mut World, until: Time) {
        self.work(world);
        while world.turn(until) {
            self.work(world);
        }
        world.now = until;
    }
}
