//! The session in which the near end asks, and the one that comes of a question.
//!
//! Invariants: no text of a peer gets into a session file but the graph, which is one line of
//! printable characters, and of what comes out of it every flow is one of bytes: a peer never names
//! a file of this host.

use super::ask::{Ask, CONTROL, MESSAGE_LEN_MAX};
use crate::cli::net_word;
use dacapo_qos::{SessionFile, Source};
use std::net::SocketAddr;

const GRAPH_LEN_MAX: usize = 1_024;

/// Whom the flows of a run are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audience {
    /// Who takes part besides the owner of the session.
    pub participants: usize,
    /// The group that flows over udp-multicast are sent to.
    pub group: Option<SocketAddr>,
}

impl Audience {
    /// One other end.
    pub const ONE: Self = Self { participants: 1, group: None };
}

/// A flow of which nothing may be lost, as it stands in the file of a session.
pub fn lossless_flow(name: &str, from: &str, unit_len_max: usize) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n\
         unit_max = \"{unit_len_max} B\"\n\
         attributes = {{ loss = 0, order = \"ordered\", integrity = \"checked\" }}\n"
    )
}

/// The session in which the near end asks.
pub fn control_file() -> String {
    let ask = lossless_flow("ask", "participant", MESSAGE_LEN_MAX);
    let answer = lossless_flow("answer", "creator", MESSAGE_LEN_MAX);
    let title = "Measurements of the network: dacapo bench net HOST";
    format!(
        "[session]\nname = \"{CONTROL}\"\ntitle = \"{title}\"\ngive_up = \"5 s\"\n{ask}{answer}"
    )
}

impl Ask {
    /// The session of the run, which the far end owns; of what is sent once for several it is the
    /// near end, because only who owns a session can send so.
    ///
    /// # Errors
    /// What is wrong with the graph.
    pub fn session_file(&self, name: &str, audience: &Audience) -> Result<String, String> {
        let graph = graph(&self.graph)?;
        let (up, down) = self.flow_names();
        let bound = self.bound_bps().map(|bps| format!("bound = \"{bps} bit/s\"\n"));
        let (bound, len) = (bound.unwrap_or_default(), self.unit_len);
        let way = self.way(audience);
        let Audience { participants, .. } = audience;
        let flow = |name: &String, from: &str| {
            format!(
                "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n\
                 unit_max = \"{len} B\"\n{bound}{way}\
                 attributes = {{ receivers = {{ max = {participants} }} }}\ngraph = {graph}\n"
            )
        };
        let source = if self.transport.is_shared() { "creator" } else { "participant" };
        let up: String = up.iter().map(|name| flow(name, source)).collect();
        let down: String = down.iter().map(|name| flow(name, "creator")).collect();
        let text = format!("[session]\nname = \"{name}\"\ngive_up = \"5 s\"\n{up}{down}");
        let file = SessionFile::parse(&text, "graph").map_err(|errors| problems(&errors))?;
        let is_bytes = file.flows.iter().all(|flow| *flow.source == Source::Raw);
        if is_bytes { Ok(text) } else { Err("the graph is more than a graph".to_owned()) }
    }

    /// What is below the graph, and where it leads.
    fn way(&self, audience: &Audience) -> String {
        match audience.group {
            Some(group) => format!("multicast = \"{group}\"\n"),
            None => format!("transport = \"{}\"\n", net_word(self.transport)),
        }
    }
}

/// What is wrong with a graph, without the lines of a file that nobody has written, and once for
/// all flows.
pub fn problems(errors: &dacapo_qos::Errors) -> String {
    let text = errors.to_string();
    let lines = text.lines().filter_map(|line| match line.split_once(": flow[") {
        Some((_, of)) => of.strip_prefix("0].").map(str::to_owned),
        None => Some(line.to_owned()),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A graph in the words of a session file, from those of the command line.
///
/// # Errors
/// What is wrong with it.
pub fn graph(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() > GRAPH_LEN_MAX {
        return Err(format!("a graph of more than {GRAPH_LEN_MAX} bytes"));
    }
    // One line that cannot become two, or a part of the next.
    let is_plain = |c: char| (c.is_ascii_graphic() && c != '\\' && c != '#') || c == ' ';
    if !text.chars().all(is_plain) || text.contains("'''") || text.contains("\"\"\"") {
        return Err("a graph of other characters than those of a session file".to_owned());
    }
    if text.starts_with('[') {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = text.split([',', '!']).map(str::trim).collect();
    if names == [""] {
        return Ok("[]".to_owned());
    }
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("{name:?} is no name of a module; see `dacapo modules`")),
        None => Ok(format!("[\"{}\"]", names.join("\", \""))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;
    use crate::cli::NetDirection;
    use crate::net::ask::tests::named;

    #[test]
    fn the_flows_of_a_run_are_those_that_were_asked_for() {
        let text = ask().session_file("net-1", &Audience::ONE).unwrap();
        let file = SessionFile::parse(&text, "test").unwrap();
        let names: Vec<&str> = file.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["up0", "up1", "down0", "down1"]);
        // 10,000 bytes are 5,000 each, in units of 1,400.
        assert_eq!(ask().units_max(), 4);
        SessionFile::parse(&control_file(), "test").unwrap();
    }

    #[test]
    fn what_is_sent_once_for_several_comes_from_who_owns_the_session() {
        let group = Some("239.255.1.2:5004".parse().unwrap());
        for (transport, group) in [(named("udp-multicast"), group), (named("tcp-multicast"), None)]
        {
            let asked = Ask { transport, direction: NetDirection::Up, ..ask() };
            let text = asked.session_file("net-1", &Audience { participants: 3, group }).unwrap();
            let file = SessionFile::parse(&text, "test").unwrap();
            assert_eq!(file.flows.len(), 2, "{text}");
            for flow in &file.flows {
                assert_eq!(flow.multicast.as_ref().map(|it| it.value), group);
                assert!(text.contains("from = \"creator\"") && text.contains("max = 3"), "{text}");
                assert!(!text.contains("participant"), "{text}");
            }
        }
    }

    #[test]
    fn a_graph_is_a_graph_and_nothing_more() {
        assert_eq!(graph(" segment, sequence "), Ok("[\"segment\", \"sequence\"]".to_owned()));
        assert_eq!(graph(""), Ok("[]".to_owned()));
        let table = "[{ module = \"sequence\", hold = \"60 ms\" }]";
        assert_eq!(graph(table), Ok(table.to_owned()));
        let stolen = "[]\n[[flow]]\nname = \"x\"\nsource = { file = \"/etc/passwd\" }";
        for wrong in [stolen, "[\"\"\"", "['''", "a b", "a,,b", "[] # x", "[\"\\u0041\"]"] {
            assert!(graph(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["[", "[] source = { file = \"x\" }", "[\"segment\"], x = [", "[\"a", "[1]"] {
            let asked = Ask { graph: wrong.to_owned(), ..ask() };
            assert!(asked.session_file("net-1", &Audience::ONE).is_err(), "{wrong:?}");
        }
    }
}
