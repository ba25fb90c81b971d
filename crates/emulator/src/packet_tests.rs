//! Damage to packets of every kind, with the checksums computed anew.

use super::*;

/// The sum over a transport with its pseudo header, as a receiver computes it: 0 is right.
fn verdict(packet: &[u8]) -> u16 {
    let (protocol, transport, addresses) = match packet[0] >> 4 {
        4 => (packet[9], usize::from(packet[0] & 15) * 4, 12..20),
        _ => (packet[6], 40, 8..40),
    };
    let body = &packet[transport..];
    let mut words = body.to_vec();
    if protocol != ICMP {
        words.extend_from_slice(&[0; 64][..words.len() % 2]);
        words.extend_from_slice(&packet[addresses]);
        words.extend_from_slice(&[0, protocol]);
        words.extend_from_slice(&(body.len() as u16).to_be_bytes());
    }
    words.extend_from_slice(&[0; 64][..words.len() % 2]);
    !fold(words.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum())
}

/// A packet with right checksums.
fn packet(version: u8, protocol: u8, payload_len: usize, random: &mut Random) -> Vec<u8> {
    let (header_len, at) = match protocol {
        UDP => (8, 6),
        TCP => (24, 16),
        _ => (8, 2),
    };
    let len = header_len + payload_len;
    let mut packet = if version == 4 { vec![0; 24] } else { vec![0; 40] };
    let transport = packet.len();
    if version == 4 {
        packet[0] = 0x46;
        packet[9] = protocol;
        random.fill(&mut packet[12..20]);
    } else {
        packet[0] = 0x60;
        packet[6] = protocol;
        random.fill(&mut packet[8..40]);
    }
    packet.resize(transport + len, 0);
    random.fill(&mut packet[transport..]);
    if protocol == TCP {
        packet[transport + 12] = 6 << 4;
    }
    packet[transport + at..transport + at + 2].fill(0);
    let sum = match verdict(&packet) {
        0 if protocol == UDP => 0xFFFF,
        sum => sum,
    };
    packet[transport + at..transport + at + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

const KINDS: [(u8, u8); 6] = [(4, UDP), (4, TCP), (4, ICMP), (6, UDP), (6, TCP), (6, ICMP_V6)];

#[test]
fn undetected_damage_keeps_the_checksum_right_and_detected_damage_does_not() {
    for seed in 0..4_000 {
        let mut random = Random::from_number(seed);
        let (version, protocol) = KINDS[seed as usize % KINDS.len()];
        let payload_len = random.below(70) as usize;
        let before = packet(version, protocol, payload_len, &mut random);
        let what = format!("seed {seed}, IPv{version}, protocol {protocol}, {payload_len} bytes");
        assert_eq!(verdict(&before), 0, "{what}");
        for kind in [Corruption::Undetected, Corruption::Detected] {
            let mut after = IpPacket(before.clone());
            after.corrupt(&mut random, kind);
            assert_ne!(after.0, before, "{what}");
            assert_eq!(after.0.len(), before.len(), "{what}");
            assert_eq!(verdict(&after.0) == 0, kind == Corruption::Undetected, "{what}");
            let transport = before.len() - (verdict_len(&before));
            assert_eq!(after.0[..transport], before[..transport], "{what}: its IP header");
        }
    }
}

fn verdict_len(packet: &[u8]) -> usize {
    packet.len() - if packet[0] >> 4 == 4 { usize::from(packet[0] & 15) * 4 } else { 40 }
}

#[test]
fn only_the_payload_and_the_checksum_change_where_there_is_a_payload() {
    let mut random = Random::from_number(9);
    let before = packet(4, UDP, 100, &mut random);
    for _ in 0..500 {
        let mut after = IpPacket(before.clone());
        after.corrupt(&mut random, Corruption::Undetected);
        assert_eq!(after.0[..30], before[..30], "IP header, ports and length");
        assert_ne!(after.0[32..], before[32..]);
    }
}

#[test]
fn a_udp_checksum_of_zero_stays_and_the_header_is_spoilt_instead() {
    let mut random = Random::from_number(2);
    let mut before = packet(4, UDP, 10, &mut random);
    before[30..32].fill(0);
    let mut after = IpPacket(before.clone());
    after.corrupt(&mut random, Corruption::Undetected);
    assert_eq!(after.0[..32], before[..32]);
    let mut after = IpPacket(before.clone());
    after.corrupt(&mut random, Corruption::Detected);
    assert_ne!(after.0[10..12], before[10..12]);
    assert_eq!(after.0[12..], before[12..]);
}

#[test]
fn fragments_and_unknown_protocols_are_altered_after_their_header() {
    let mut random = Random::from_number(3);
    let fragment = |packet: &mut Vec<u8>| packet[6] = 0x20;
    let other = |packet: &mut Vec<u8>| packet[9] = 47;
    for change in [fragment as fn(&mut Vec<u8>), other] {
        let mut before = packet(4, UDP, 30, &mut random);
        change(&mut before);
        let mut after = IpPacket(before.clone());
        after.corrupt(&mut random, Corruption::Undetected);
        assert_eq!(after.0[..24], before[..24]);
        assert_ne!(after.0, before);
        let mut after = IpPacket(before.clone());
        after.corrupt(&mut random, Corruption::Detected);
        assert_ne!(after.0[10], before[10]);
    }
}

#[test]
fn any_bytes_are_taken_and_altered() {
    for seed in 0..20_000 {
        let mut random = Random::from_number(seed);
        let mut bytes = vec![0; 1 + random.below(90) as usize];
        random.fill(&mut bytes);
        if random.chance(0.8) {
            bytes[0] = if random.chance(0.5) { 0x45 } else { 0x60 };
        }
        if random.chance(0.5) && bytes.len() > 9 {
            (bytes[6], bytes[9]) = (TCP, UDP);
        }
        for kind in [Corruption::Undetected, Corruption::Detected] {
            let mut packet = IpPacket(bytes.clone());
            packet.corrupt(&mut random, kind);
            assert!(packet.0.len() == bytes.len() && packet.0 != bytes, "seed {seed}: {bytes:?}");
        }
    }
}

/// The sum over an IPv4 header: 0 is right.
fn header_verdict(packet: &[u8]) -> u16 {
    let header = &packet[..usize::from(packet[0] & 15) * 4];
    !fold(header.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum())
}

#[test]
fn a_mark_changes_the_traffic_class_and_the_checksum_of_its_header_alone() {
    for seed in 0..4_000 {
        let mut random = Random::from_number(seed);
        let (version, protocol) = KINDS[seed as usize % KINDS.len()];
        let mut before = packet(version, protocol, 30, &mut random);
        let class = random.next_u32() as u8;
        if version == 4 {
            before[1] = class;
            random.fill(&mut before[2..6]);
            let sum = header_verdict(&before);
            before[10..12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(header_verdict(&before), 0, "seed {seed}");
        } else {
            before[0] = 0x60 | class >> 4;
            before[1] = class << 4 | 0x0A;
        }
        let what = format!("seed {seed}, IPv{version}, class {class:08b}");
        assert_eq!(IpPacket(before.clone()).ecn(), Ecn::from_bits(class), "{what}");
        for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            let mut after = IpPacket(before.clone());
            after.set_ecn(ecn);
            assert_eq!(after.ecn(), ecn, "{what}");
            assert_eq!(verdict(&after.0), 0, "{what}: the transport's checksum");
            let is_changed = before[..2] != after.0[..2];
            assert_eq!(is_changed, ecn != Ecn::from_bits(class), "{what}");
            if version == 4 {
                assert_eq!(header_verdict(&after.0), 0, "{what}");
                assert_eq!(after.0[1] & !3, class & !3, "{what}");
                after.0[10..12].copy_from_slice(&before[10..12]);
            } else {
                let bits = u16::from_be_bytes([after.0[0], after.0[1]]) & !0x30;
                assert_eq!(bits, 0x6000 | u16::from(class & !3) << 4 | 0x0A, "{what}");
            }
            assert_eq!(after.0[2..], before[2..], "{what}");
        }
    }
}

#[test]
fn what_has_no_header_has_no_mark_and_takes_none() {
    let short = [vec![], vec![0x45], vec![0x45; 19], vec![0x61; 39], vec![0x55; 60]];
    for bytes in short {
        let mut packet = IpPacket(bytes.clone());
        assert_eq!(packet.ecn(), Ecn::NotEct);
        packet.set_ecn(Ecn::Ce);
        assert_eq!(packet.0, bytes);
    }
}
