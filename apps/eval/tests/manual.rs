//! `dacapo-eval completions` and `man`: what shells and readers of manuals get.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../dacapo/tests/common/mod.rs"]
mod common;
mod eval;

use common::{LONG, Place, files, in_order};

#[test]
fn every_measurement_has_a_manual_page() {
    let place = Place::new();
    eval::run(&place, &["man", "man1"]).expect(0);
    let main = std::fs::read_to_string(place.path("man1/dacapo-eval.1")).unwrap();
    let names = [
        "choice", "choices", "drawn", "control", "copies", "cost", "transfer", "lift", "link",
        "net", "safenet", "scale", "speed", "xtp", "list", "run", "show", "profile", "compare",
        "history", "check",
    ];
    for name in names {
        let page = format!("man1/dacapo-eval-{name}.1");
        let page = std::fs::read_to_string(place.path(&page)).unwrap();
        in_order(&page, &[".SH NAME", ".SH OPTIONS", ".SH EXAMPLES", ".SH \"SEE ALSO\""]);
        assert!(main.contains(&format!("dacapo\\-eval\\-{name}(1)")), "{name}: {main}");
    }
    // Those of completions, man and the program itself.
    assert_eq!(files(&place.path("man1"), "1").len(), names.len() + 3);
    assert_eq!(eval::run(&place, &["man"]).expect(0).out, main);
}

#[test]
fn bash_completes_with_its_script() {
    let place = Place::new();
    let script = eval::run(&place, &["completions", "bash"]).expect(0).out;
    place.write("eval.bash", &script);
    for (words, at, last, is) in
        [("saf", 1, "dacapo-eval", "safenet"), ("safenet --no", 2, "safenet", "--no-check")]
    {
        let word = words.split(' ').next_back().unwrap();
        let ask = format!(
            "source eval.bash; COMP_WORDS=(dacapo-eval {words}); COMP_CWORD={at}; \
             _dacapo__subcmd__eval dacapo-eval {word} {last}; echo \"${{COMPREPLY[@]}}\""
        );
        let run = place.start_command(place.program("bash", &["-c", &ask])).wait(LONG).expect(0);
        assert_eq!(run.out.trim(), is, "{}", run.all());
    }
}
