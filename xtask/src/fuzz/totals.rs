//! Totals: what was run so far, over many runs, in a JSON file.
//!
//! ```text
//!   {"targets":{"wire_record":{"executions":1200000,"seconds":90,"crashes":0},…}}
//! ```
//!
//! Invariant: the file is replaced whole, so a run that is stopped leaves the one before.

use super::Found;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// What was run of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Total {
    executions: u64,
    seconds: u64,
    crashes: u64,
}

/// Adds a run to the totals in a file, which need not be there.
///
/// # Errors
/// The file cannot be read or written, or holds something else.
pub fn add(path: &Path, found: &[Found]) -> io::Result<()> {
    let mut totals = match fs::read_to_string(path) {
        Ok(text) => read(&text).ok_or_else(|| {
            let text = format!("{}: not totals of fuzzing; move it away", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(error),
    };
    for one in found {
        let total = totals.entry(one.name.clone()).or_default();
        total.executions = total.executions.saturating_add(one.executions);
        total.seconds = total.seconds.saturating_add(one.seconds);
        total.crashes = total.crashes.saturating_add(one.crashes.len() as u64);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, write(&totals))?;
    fs::rename(&temporary, path)
}

fn write(totals: &BTreeMap<String, Total>) -> String {
    let one = |(name, total): (&String, &Total)| {
        let Total { executions, seconds, crashes } = total;
        format!(
            "\"{name}\":{{\"executions\":{executions},\"seconds\":{seconds},\"crashes\":{crashes}}}"
        )
    };
    let all: Vec<String> = totals.iter().map(one).collect();
    format!("{{\"targets\":{{{}}}}}\n", all.join(","))
}

/// None where it is not of that form.
fn read(text: &str) -> Option<BTreeMap<String, Total>> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut rest = compact.strip_prefix("{\"targets\":{")?.strip_suffix("}}")?;
    let mut totals = BTreeMap::new();
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix('"')?.split_once("\":{")?;
        let (fields, after) = after.split_once('}')?;
        let mut total = Total::default();
        for field in fields.split(',') {
            let (key, value) = field.split_once(':')?;
            let place = match key {
                "\"executions\"" => &mut total.executions,
                "\"seconds\"" => &mut total.seconds,
                "\"crashes\"" => &mut total.crashes,
                _ => return None,
            };
            *place = value.parse().ok()?;
        }
        totals.insert(name.to_owned(), total);
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_other_things_are_not() {
        let mut totals = BTreeMap::new();
        assert_eq!(read(&write(&totals)), Some(totals.clone()));
        totals.insert("a".to_owned(), Total { executions: u64::MAX, seconds: 3, crashes: 0 });
        totals.insert("b_c".to_owned(), Total::default());
        assert_eq!(read(&write(&totals)), Some(totals.clone()));
        assert_eq!(read(&write(&totals).replace(',', ",\n  ")), Some(totals));
        for text in ["", "{}", "{\"targets\":[]}", "{\"targets\":{\"a\":{\"x\":1}}}", "nonsense"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn runs_add_up_in_the_file() {
        let folder = std::env::temp_dir().join(format!("dacapo-totals-{}", std::process::id()));
        let path = folder.join("deep/totals.json");
        let run = Found { name: "a".into(), executions: 10, seconds: 2, ..Found::default() };
        let crashed = Found { crashes: vec!["x".into()], ..run.clone() };
        add(&path, &[run]).unwrap();
        add(&path, &[crashed]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let expected = "{\"targets\":{\"a\":{\"executions\":20,\"seconds\":4,\"crashes\":1}}}\n";
        assert_eq!(text, expected);
        fs::write(&path, "nonsense").unwrap();
        assert!(add(&path, &[]).unwrap_err().to_string().contains("not totals"));
        fs::remove_dir_all(folder).unwrap();
    }
}
