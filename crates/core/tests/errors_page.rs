//! `docs/errors.md` lists every code with its number, fault and text.

use dacapo_core::Code;

const PAGE: &str = include_str!("../../../docs/errors.md");

#[test]
fn the_page_lists_every_code_as_it_is() {
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit())
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), Code::ALL.len());
    for (row, code) in rows.iter().zip(Code::ALL) {
        let is = [
            (*code as u16).to_string(),
            format!("{code:?}"),
            format!("{:?}", code.fault()),
            code.summary().to_owned(),
        ];
        assert_eq!(row, &is.each_ref().map(String::as_str));
        assert_eq!(Code::from_number(*code as u16), Some(*code));
    }
}
