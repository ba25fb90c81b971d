//! Frames that come in by a ring: the same as by calls, and what a ring has of its own.

use crate::cable::{Cable, ip, wait};
use crate::{BUFFER, ETHERTYPE, LONG};
use dacapo_base::patience;
use dacapo_sys::interface;
use dacapo_sys::packet::{Address, Inlet, Recv, Socket};
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::udp::RecvError;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The slots of a ring for payloads of 1,500 bytes.
const SLOTS: u32 = 2_048;

/// A socket with a ring at an end, and the address of its interface.
fn with_ring(cable: &Cable, end: usize) -> (Socket, Address) {
    let open = || {
        let socket = Socket::with_ring(interface::index("v").unwrap(), ETHERTYPE, 1_500);
        (socket.unwrap(), interface::ethernet_address("v").unwrap().unwrap())
    };
    cable.ends[end].run(open).unwrap()
}

/// The next frame, when it is there: what is known of it, and its payload.
fn next(socket: &mut Socket) -> Option<(Recv, Vec<u8>)> {
    let mut buffer = BUFFER;
    match socket.recv(&mut buffer) {
        Ok(recv) => Some((recv, socket.payload(&recv, &buffer).to_vec())),
        Err(RecvError::WouldBlock) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// The next frame, which may be on its way.
fn come(socket: &mut Socket) -> (Recv, Vec<u8>) {
    wait(socket.as_fd());
    next(socket).unwrap()
}

fn is_readable(socket: &Socket) -> bool {
    let (mut poller, mut events) = (Poller::new().unwrap(), Vec::new());
    poller.add(socket.as_fd(), 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::ZERO), &mut events).unwrap();
    !events.is_empty()
}

#[test]
fn a_ring_has_what_was_sent_in_its_order_however_often_it_goes_round() {
    let Some(cable) = Cable::new() else { return };
    let ((near, from), (mut far, to)) = (cable.ethernet(0), with_ring(&cable, 1));
    assert!(next(&mut far).is_none() && !is_readable(&far));
    for round in 0..40_u32 {
        let payload = |number: u32| {
            let len = [1_500, 1, 46, 777][number as usize % 4];
            let mut payload = vec![(round + number) as u8; len];
            payload[0] = number as u8;
            payload
        };
        for number in 0..100 {
            near.send(to, &payload(number)).unwrap();
        }
        for number in 0..100 {
            let (recv, bytes) = come(&mut far);
            assert!(bytes == payload(number), "round {round}, frame {number}");
            assert_eq!((recv.len, recv.from, recv.truncated), (bytes.len(), from, false));
            assert!(recv.is_for_us && !recv.is_sent);
        }
        // Who has taken all is not woken again.
        assert!(next(&mut far).is_none() && !is_readable(&far));
    }
    assert_eq!((far.take_has_lost(), far.take_drops().unwrap()), (false, 0));
}

#[test]
fn what_has_no_slot_is_dropped_and_counted_and_the_ring_goes_on() {
    let Some(cable) = Cable::new() else { return };
    let ((near, _), (mut far, to)) = (cable.ethernet(0), with_ring(&cable, 1));
    for number in 0..SLOTS + 300 {
        near.send(to, &number.to_be_bytes()).unwrap();
    }
    // All have come when so many were dropped.
    let mut drops = 0;
    let all = patience::until(Instant::now, LONG, || {
        drops += far.take_drops().unwrap();
        if drops < 300 {
            std::thread::sleep(Duration::from_millis(1));
        }
        (drops >= 300).then_some(())
    });
    assert!(all.is_some(), "{drops} drops");
    let mut came = 0;
    while let Some((_, bytes)) = next(&mut far) {
        assert_eq!(bytes, u32::to_be_bytes(came));
        came += 1;
    }
    assert_eq!((came, far.take_drops().unwrap()), (SLOTS, 0));
    // What comes while the count has not been asked for says that there is one.
    for number in 0..=SLOTS {
        near.send(to, &number.to_be_bytes()).unwrap();
    }
    while next(&mut far).is_some() {}
    near.send(to, b"after").unwrap();
    wait(far.as_fd());
    assert_eq!(next(&mut far).unwrap().1, b"after");
    assert!(far.take_has_lost() && !far.take_has_lost());
    assert_eq!((far.take_drops().unwrap(), far.take_drops().unwrap()), (1, 0));
}

#[test]
fn a_frame_that_is_longer_than_its_slot_is_cut_and_said_to_be() {
    let Some(cable) = Cable::new() else { return };
    let ((near, _), (mut far, to)) = (cable.ethernet(0), with_ring(&cable, 1));
    // The interface takes longer frames now than when the ring was made.
    for end in &cable.ends {
        ip(&format!("-n {} link set v mtu 9000", end.name()));
    }
    for len in [1_500, 1_969, 9_000, 100] {
        near.send(to, &vec![7; len]).unwrap();
        wait(far.as_fd());
        let (recv, bytes) = next(&mut far).unwrap();
        assert_eq!((recv.truncated, bytes.len() < len), (len > 1_968, len > 1_968), "{len}");
        assert!(bytes.iter().all(|byte| *byte == 7) && recv.len == bytes.len());
    }
}

#[test]
fn the_tag_of_a_vlan_makes_a_frame_one_for_others_by_either_way() {
    let Some(cable) = Cable::new() else { return };
    let tagger = cable.ends[0].run(|| Socket::open(interface::index("v").unwrap(), 0x8100));
    let tagger = tagger.unwrap().unwrap();
    let ((ring, to), (calls, _)) = (with_ring(&cable, 1), cable.ethernet(1));
    for mut far in [ring, calls] {
        // VLAN 5 is not here; VLAN 0 is none, only a priority.
        for (tag, is_for_us) in [([0, 5], false), ([0xE0, 0], true)] {
            let payload = [&tag[..], &ETHERTYPE.to_be_bytes(), b"tagged"].concat();
            tagger.send(to, &payload).unwrap();
            let (recv, bytes) = std::iter::repeat_with(|| {
                wait(far.as_fd());
                next(&mut far)
            })
            .find_map(|came| came)
            .unwrap();
            assert_eq!((recv.is_for_us, &bytes[..]), (is_for_us, &b"tagged"[..]), "{tag:?}");
        }
    }
}

#[test]
fn a_ring_whose_interface_goes_away_says_so_once() {
    let Some(cable) = Cable::new() else { return };
    let (mut far, _) = with_ring(&cable, 1);
    ip(&format!("-n {} link del v", cable.ends[1].name()));
    wait(far.as_fd());
    let said = far.recv(&mut BUFFER.clone());
    assert!(matches!(said, Err(RecvError::Other(_) | RecvError::Unreachable)), "{said:?}");
    assert!(matches!(far.recv(&mut BUFFER.clone()), Err(RecvError::WouldBlock)));
}

#[test]
fn where_there_is_no_ring_calls_do_and_it_is_said_why() {
    let Some(cable) = Cable::new() else { return };
    let open = |len| move || Socket::open_either(interface::index("v").unwrap(), ETHERTYPE, len);
    let (_, inlet) = cable.ends[1].run(open(1_500)).unwrap().unwrap();
    assert_eq!(inlet.name(), "ring");
    let (mut far, inlet) = cable.ends[1].run(open(usize::MAX / 2)).unwrap().unwrap();
    assert!(matches!(inlet, Inlet::Calls(_)) && inlet.name() == "calls", "{inlet}");
    let ((near, _), (_, to)) = (cable.ethernet(0), cable.ethernet(1));
    near.send(to, b"all the same").unwrap();
    wait(far.as_fd());
    assert_eq!(next(&mut far).unwrap().1, b"all the same");
    assert!(!far.take_has_lost());
}

/// Of each ring that is left over there would be a mapping.
#[test]
fn nothing_is_left_of_rings_that_are_dropped() {
    let Some(cable) = Cable::new() else { return };
    for _ in 0..30 {
        with_ring(&cable, 1);
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.matches("socket:").count() < 10, "{maps}");
}
