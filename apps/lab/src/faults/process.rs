//! Faults of processes, files, limits and system calls, and hostile peers: what other tests of the
//! tree check, run by name.
//!
//! ```text
//!   full scale    cargo test -p PACKAGE --test FILE [NAME]  ->  "N tests passed"
//!   short scale   every test that is named is there         ->  "N tests named"
//! ```

use crate::fault::{Fault, Scale, Seen};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of tests, and which of them; none is all.
struct Tests {
    package: &'static str,
    folder: &'static str,
    file: &'static str,
    names: &'static [&'static str],
}

macro_rules! rows {
    ($($id:literal: $fault:literal, $injector:literal, $expected:literal,
        ($package:literal, $folder:literal, $file:literal, [$($name:literal),*]);)*) => {
        /// The rows.
        pub const ROWS: &[Fault] = &[$(Fault {
            id: $id,
            fault: $fault,
            injector: $injector,
            expected: $expected,
            test: concat!("cargo test -p ", $package, " --test ", $file),
            bench: None,
            run: |scale| {
                let names = &[$($name),*];
                let tests =
                    Tests { package: $package, folder: $folder, file: $file, names };
                tests.run(scale)
            },
        },)*];
    };
}

rows! {
    "killed-at": "a process is killed (SIGKILL) at every failpoint of set-up, data, files and end",
        "failpoints (debug builds)",
        "the other end is told or goes on; files are whole or marked; a new start works at once",
        ("dacapo-cli", "apps/dacapo", "kills", []);
    "killed-restart": "the server is killed and started again at the same port", "SIGKILL",
        "the next player plays at once",
        ("dacapo-cli", "apps/dacapo", "faults_process",
            ["a_server_that_is_killed_and_started_again_serves_the_next_player_at_once"]);
    "stopped": "a player, a server, a sender or a receiver is stopped for a while",
        "SIGSTOP, SIGCONT",
        "the session goes on, both ledgers close",
        ("dacapo-cli", "apps/dacapo", "faults_process",
            ["a_process_that_is_stopped_for_a_while_goes_on_and_the_ledgers_close"]);
    "disk-full": "the disk is full, or a file may not grow, while something is saved or received",
        "tmpfs of some KiB; RLIMIT_FSIZE",
        "one error with the path; what came is kept and readable; the sender is told",
        ("dacapo-cli", "apps/dacapo", "faults_disk", []);
    "descriptors": "no descriptor is left, at a server, a listener or a player",
        "prlimit RLIMIT_NOFILE",
        "new ones are refused, nobody spins, and it goes on when there are some",
        ("dacapo-cli", "apps/dacapo", "faults_limits", [
            "a_server_without_descriptors_refuses_lives_and_serves_when_there_are_some",
            "those_who_ask_and_leave_leave_no_descriptor_behind",
            "a_listener_without_descriptors_does_not_spin_and_takes_in_who_waited",
            "a_player_without_descriptors_turns_programs_away_and_does_not_spin"
        ]);
    "memory": "64 MiB for a server with eight viewers, and for a receiver of a larger file",
        "cgroup",
        "nobody is killed for want of memory, everybody is served",
        ("dacapo-cli", "apps/dacapo", "faults_limits", [
            "a_server_with_64_mib_serves_eight_viewers_one_of_whom_does_not_read",
            "a_receiver_with_64_mib_takes_a_file_that_is_larger"
        ]);
    "syscalls": "ENOBUFS, EMSGSIZE, ECONNREFUSED, ENETUNREACH, EINTR, EAGAIN, partial sends",
        "faults of sys (debug builds)",
        "sessions and transfers run to their end, every unit accounted for, files equal",
        ("dacapo-cli", "apps/dacapo", "faults_process", [
            "a_session_whose_system_calls_fail_runs_to_its_end_and_accounts_for_every_unit",
            "a_transfer_whose_system_calls_fail_is_whole_at_the_other_end",
            "no_way_to_the_peer_is_code_3_with_the_address"
        ]);
    "syscall-classes": "the same system calls, seen by who makes them",
        "faults of sys (debug builds)",
        "each errno has its class, nothing is lost or sent twice, trains go on where they stopped",
        ("dacapo-sys", "crates/sys", "faults", []);
    "wall-clock": "the wall clock is set; monotonic clocks of both ends are far apart",
        "time namespace; a look at every source file", "nothing depends on it",
        ("dacapo-cli", "apps/dacapo", "faults_process", [
            "two_ends_whose_monotonic_clocks_are_far_apart_play_as_usual",
            "the_wall_clock_is_read_at_one_place_and_that_is_for_stamps"
        ]);
    "one-slot": "every queue of both cores has a single place", "netlab: CoreConfig::queues",
        "nothing stands still; every unit is accounted for; commands and changes go through",
        ("dacapo-netlab", "crates/netlab", "one_slot", []);
    "hostile-control": "a peer with valid authentication breaks the protocol, in both roles",
        "raw QUIC peer, 333 scripts and every cell of the state tables",
        "its session or connection ends with the right code; sessions beside it lose nothing",
        ("dacapo-netlab", "crates/netlab", "hostile_control", []);
    "hostile-floods": "100,000 forged first datagrams, 10,000 handshakes left, 1,124 silent peers",
        "raw QUIC peer, virtual time",
        "state is bounded, at most 3 bytes out per byte in, a newcomer gets in",
        ("dacapo-netlab", "crates/netlab", "hostile_control_floods", []);
    "hostile-memory": "half records and unread answers on all streams of a peer", "raw QUIC peer",
        "at most 8 MiB for one peer",
        ("dacapo-netlab", "crates/netlab", "hostile_control_memory", []);
    "groups": "receivers of a group lose, are silent, come late, leave, die, or cannot join it",
        "netlab: links of each receiver, multicast",
        "it is the trouble of none but that receiver; every account closes",
        ("dacapo-netlab", "crates/netlab", "multicast", []);
    "groups-streams": "receivers of one source over streams fall behind, break, leave or die",
        "netlab: simulated TCP",
        "who is 1 MiB behind is cut off, alone; the others get every unit",
        ("dacapo-netlab", "crates/netlab", "tcp_multicast", []);
    "hostile-groups": "a peer breaks the protocol of groups, as their creator and as a member",
        "raw QUIC peer",
        "it is refused or ends; what strangers send under its label is not taken",
        ("dacapo-netlab", "crates/netlab", "hostile_groups", []);
    "shm": "shared memory: no memory, garbage in it, a peer that goes, another user",
        "a peer that writes what it likes into the rings and the socket",
        "its own stream ends with the reason, what had come is read first, others go on",
        ("dacapo-transport", "crates/transport", "shm", [
            "what_is_in_the_ring_when_the_peer_goes_is_read_first",
            "whatever_is_given_in_place_of_memory_is_refused_and_others_go_on",
            "garbage_in_the_memory_ends_its_own_stream_only",
            "a_place_that_cannot_be_ends_the_stream_with_the_reason",
            "another_user_is_turned_away_at_both_ends"
        ]);
    "quic": "flows over QUIC: a silent peer, an outage, floods of first packets, junk, full queues",
        "relay, raw sockets",
        "given up after its patience, or goes on within a second; nobody is kept out or moved",
        ("dacapo-transport", "crates/transport", "quic", [
            "a_peer_that_says_nothing_any_more_is_given_up_after_the_patience",
            "after_an_outage_a_stream_goes_on_within_a_second",
            "a_flood_of_first_packets_keeps_nobody_out_and_is_not_kept",
            "junk_is_dropped_and_moves_no_stream",
            "what_a_full_queue_of_arrivals_has_no_room_for_is_counted"
        ]);
    "xtp": "flows over XTP: losses, a silent peer, an outage, no label, junk, another address",
        "relay, raw sockets",
        "all arrives, or lacks in order; given up after its patience; nobody is moved or answered",
        ("dacapo-transport", "crates/transport", "xtp", [
            "what_is_lost_on_the_way_arrives_all_the_same_or_is_missing_in_order",
            "a_peer_that_says_nothing_any_more_is_given_up_after_the_patience",
            "after_an_outage_a_stream_goes_on_within_two_seconds",
            "a_flood_of_first_packets_without_a_label_leaves_nothing_behind",
            "junk_is_dropped_and_moves_no_stream",
            "a_packet_from_another_address_changes_nothing"
        ]);
    "decoders": "bytes that nobody sends by mistake, at every decoder and the control states",
        "corpora of the fuzz targets and mutations of them",
        "no panic; at most twice the bytes that came and 64 KiB are allocated",
        ("dacapo-fuzz", "fuzz", "replay", []);
    "emulator": "the same seed in real time and in virtual time", "relay between two sockets",
        "every datagram has the same fate",
        ("dacapo-emulator", "crates/emulator", "relay", []);
    "emulator-tun": "real packets between network namespaces", "TUN (root)",
        "lost, cut, too long and corrupted as asked; the kernel's checksum sees what it should",
        ("dacapo-emulator", "crates/emulator", "tunnel", []);
}

impl Tests {
    fn run(&self, scale: &Scale) -> Result<Seen, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if scale.is_full() { self.run_all(&root) } else { self.find(&root) }
    }

    /// Every test that is named is in the file.
    fn find(&self, root: &Path) -> Result<Seen, String> {
        let path = self.source(root);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let missing = self.names.iter().find(|name| !text.contains(&format!("fn {name}()")));
        match missing {
            Some(name) => Err(format!("{} has no test {name}", path.display())),
            None => {
                let figure = format!("{} tests named", self.names.len());
                Ok(Seen::new(figure, json!({ "named": self.names.len() })))
            }
        }
    }

    fn source(&self, root: &Path) -> PathBuf {
        let tests = root.join(self.folder).join("tests");
        let single = tests.join(format!("{}.rs", self.file));
        if single.exists() { single } else { tests.join(self.file).join("main.rs") }
    }

    fn run_all(&self, root: &Path) -> Result<Seen, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["test", "--locked", "-q", "-p", self.package, "--test", self.file, "--"]);
        let output = command.args(self.names).current_dir(root).output();
        let output = output.map_err(|error| format!("cargo test: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = text.lines().filter_map(passed).sum::<u64>();
        let repeat = format!("cargo test -p {} --test {}", self.package, self.file);
        if !output.status.success() || passed == 0 || passed < self.names.len() as u64 {
            return Err(format!("{passed} passed; repeat: {repeat}"));
        }
        Ok(Seen::new(format!("{passed} tests passed"), json!({ "passed": passed })))
    }
}

/// The count of a closing line of the test runner.
fn passed(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("test result: ok. ")?;
    rest.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_the_test_runner_is_read() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out";
        assert_eq!((passed(line), passed("test result: FAILED. 1 passed")), (Some(12), None));
    }

    #[test]
    fn a_test_that_is_gone_is_noticed() {
        let names = &["there_is_no_such_test"];
        let tests = Tests { package: "dacapo-cli", folder: "apps/dacapo", file: "kills", names };
        let error = tests.run(&Scale::short()).unwrap_err();
        assert!(error.contains("there_is_no_such_test"), "{error}");
    }
}
