//! The versions of crates from outside in which advisories are fixed, as the lock file has them.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

type Version = (u64, u64, u64);

/// What must be at least, and why.
const MINIMA: [(&str, Version, &str); 6] = [
    ("quinn-proto", (0, 11, 15), "RUSTSEC-2023-0063, 2024-0373, 2026-0037, 2026-0185"),
    ("rustls", (0, 23, 18), "RUSTSEC-2024-0399"),
    ("bytes", (1, 11, 1), "RUSTSEC-2026-0007"),
    ("aws-lc-sys", (0, 39, 0), "five advisories of 2026"),
    ("rustls-webpki", (0, 103, 0), "RUSTSEC-2023-0053"),
    ("rcgen", (0, 14, 0), "what the lock had when it was looked at"),
];

/// Crates that have no place in the tree, and why.
const REFUSED: [(&str, &str); 6] = [
    ("bincode", "unmaintained, RUSTSEC-2025-0141; the codec is written by hand"),
    ("rkyv", "six advisories, five of them in 2026; not for bytes from outside"),
    ("tungstenite", "not needed"),
    ("protobuf", "recursion without a bound"),
    ("prost", "recursion without a bound"),
    ("openssl-sys", "TLS is rustls"),
];

/// Every version of every package in a lock file.
fn packages(lock: &str) -> BTreeMap<String, Vec<Version>> {
    let mut packages: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    let value = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?;
        Some(value.to_owned())
    };
    let mut name = String::new();
    for line in lock.lines() {
        if let Some(found) = value(line, "name") {
            name = found;
        } else if let Some(found) = value(line, "version") {
            packages.entry(name.clone()).or_default().push(version(&found));
        }
    }
    packages
}

/// Three numbers; what follows a dash or plus is left out.
fn version(text: &str) -> Version {
    let plain = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = plain.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

fn lock() -> BTreeMap<String, Vec<Version>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    packages(&std::fs::read_to_string(path).unwrap())
}

#[test]
fn every_crate_with_an_advisory_is_at_a_fixed_version() {
    let lock = lock();
    for (name, least, why) in MINIMA {
        let versions = lock.get(name).unwrap_or_else(|| panic!("{name} is not in the lock file"));
        for found in versions {
            assert!(*found >= least, "{name} {found:?} is below {least:?}: {why}");
        }
    }
}

#[test]
fn crates_that_were_refused_have_not_come_back() {
    let lock = lock();
    for (name, why) in REFUSED {
        assert!(!lock.contains_key(name), "{name} is in the lock file: {why}");
    }
    assert!(lock.len() < 250, "{} packages, of which all must be looked at", lock.len());
}

#[test]
fn a_lock_file_is_read_with_all_versions_of_a_package() {
    let text = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"a\"\n\
        version = \"0.10.0-rc.1+spec\"\n";
    let expected = BTreeMap::from([("a".to_owned(), vec![(1, 2, 3), (0, 10, 0)])]);
    assert_eq!(packages(text), expected);
}
