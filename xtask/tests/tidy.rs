//! The repository keeps its own rules: `cargo xtask tidy` as a test.

use std::process::Command;

#[test]
fn the_repository_is_tidy() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidy").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo xtask tidy found problems:\n{text}{errors}");
}

#[test]
fn a_command_that_is_unknown_shows_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tydi").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cargo xtask tidy"));
}
