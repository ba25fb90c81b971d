//! [`Profile`]: the instructions of each function, from what callgrind writes.
//!
//! Source: <https://valgrind.org/docs/manual/cl-format.html>

use std::collections::BTreeMap;
use std::io;

/// Instructions by function, without those of functions that they call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    functions: BTreeMap<String, u64>,
}

/// Names that are written once and then stand as a number.
#[derive(Default)]
struct Names(BTreeMap<u64, String>);

impl Names {
    /// The name that `(7) name`, `(7)` or `name` is.
    fn read(&mut self, text: &str) -> Option<String> {
        let Some((number, name)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return Some(text.to_owned());
        };
        let number = number.parse().ok()?;
        if !name.trim().is_empty() {
            self.0.insert(number, name.trim().to_owned());
        }
        Some(self.0.get(&number).cloned().unwrap_or_default())
    }
}

impl Profile {
    /// Reads a file of callgrind about `program`, whose own functions do not count: they are only
    /// there to give the others something to do.
    ///
    /// # Errors
    /// A line that is none of this form.
    pub fn parse(text: &str, program: &str) -> io::Result<Self> {
        let (mut objects, mut names) = (Names::default(), Names::default());
        let (mut object, mut function) = (String::new(), String::new());
        let (mut is_body, mut is_call) = (false, false);
        let mut profile = Self::default();
        let own = format!("{program}::");
        for (index, line) in text.lines().enumerate() {
            let wrong = || {
                let text =
                    format!("line {} of callgrind's file is not understood: {line}", index + 1);
                io::Error::new(io::ErrorKind::InvalidData, text)
            };
            // The head ends where the first name stands.
            is_body |=
                line.starts_with("ob=") || line.starts_with("fl=") || line.starts_with("fn=");
            match line.split_once('=') {
                _ if !is_body || line.is_empty() => {}
                Some(("ob", name)) => object = objects.read(name).ok_or_else(wrong)?,
                Some(("cob", name)) => drop(objects.read(name).ok_or_else(wrong)?),
                Some(("fn", name)) => function = names.read(name).ok_or_else(wrong)?,
                Some(("cfn", name)) => drop(names.read(name).ok_or_else(wrong)?),
                Some(("fl" | "fi" | "fe" | "cfi" | "cfl", _)) => {}
                // The line behind it says what the calls cost.
                Some(("calls", _)) => is_call = true,
                None if line.starts_with("totals:") || line.starts_with("summary:") => {}
                None if std::mem::take(&mut is_call) => {}
                None => {
                    let cost = line.split_once(' ').and_then(|(_, cost)| cost.parse::<u64>().ok());
                    let cost = cost.ok_or_else(wrong)?;
                    let name = tidy_name(&function, &object, program);
                    if !name.contains(&own) {
                        *profile.functions.entry(name).or_default() += cost;
                    }
                }
                Some(_) => return Err(wrong()),
            }
        }
        Ok(profile)
    }

    /// The instructions of all functions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.functions.values().sum()
    }

    /// The functions, the hottest first.
    #[must_use]
    pub fn hottest(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> =
            self.functions.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        all.sort_by(|one, next| next.1.cmp(&one.1).then(one.0.cmp(next.0)));
        all
    }
}

/// A name without what differs between two builds of the same function, and with the library that
/// it is from when that is not the program.
fn tidy_name(name: &str, object: &str, program: &str) -> String {
    let object = object.rsplit('/').next().unwrap_or_default();
    let is_copy = ["memcpy", "memmove"].iter().any(|it| name.contains(it));
    let plain = ["memcmp", "memset"].iter().find(|it| name.contains(**it));
    match plain {
        _ if object == program || object.is_empty() => {}
        // The library has one of these for each kind of processor.
        _ if is_copy => return format!("{object}: memcpy"),
        Some(plain) => return format!("{object}: {plain}"),
        None => return format!("{object}: {name}"),
    }
    let name = name.split(".llvm.").next().unwrap_or_default();
    // Callgrind adds the depth of a recursion, and an old mangling ends with a hash.
    let name = name.split('\'').next().unwrap_or_default();
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|it| it.is_ascii_hexdigit());
    match name.rsplit_once("::h") {
        Some((short, hash)) if is_hash(hash) => short.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# callgrind format
version: 1
cmd:  ./work tcp
positions: line
events: Ir
summary: 999


ob=(1) /somewhere/work
fl=(1) /a/b.rs
fn=(1) <a::B as c::D>::e::h0123456789abcdef
10 5
+3 7
cob=(2) /lib/libc.so.6
cfi=(2) ./string/copy.S
cfn=(2) __memcpy_avx_unaligned
calls=3 100
* 300
fi=(3) /c.rs
-2 4
fn=(3) work::counted
1 1000

ob=(2)
fl=(2)
fn=(2)
1 300
fn=(4) malloc
1 20

ob=(1)
fl=(1)
fn=(5) <a::B as c::D>::e::hfedcba9876543210
5 1
fn=(6) f::g'2
5 9
totals: 1346
";

    #[test]
    fn a_functions_own_instructions_are_summed_by_its_name_without_hash() {
        let profile = Profile::parse(FILE, "work").unwrap();
        let expected = [
            ("libc.so.6: memcpy", 300),
            ("libc.so.6: malloc", 20),
            ("<a::B as c::D>::e", 17),
            ("f::g", 9),
        ];
        assert_eq!(profile.hottest(), expected);
        assert_eq!(profile.total(), 346);
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error_with_its_number() {
        let error = Profile::parse(&FILE.replace("+3 7", "seven"), "work").unwrap_err();
        assert_eq!(error.to_string(), "line 13 of callgrind's file is not understood: seven");
        let error = Profile::parse(&FILE.replace("fi=(3)", "fx=(3)"), "work").unwrap_err();
        assert!(error.to_string().starts_with("line 19 "), "{error}");
    }
}
