//! A graph as a line of text, as everything here prints one.
//!
//! ```text
//!   "segment ! sequence hold=60ms ! checksum"
//!       ->  [0x0001 {}, 0x0002 { 0: 60_000_000 }, 0x0003 {}]
//! ```
//!
//! Invariant: what [`describe`](super::graph::describe) writes of modules, with ` ! ` between them,
//! reads back; an empty text is the graph without modules.

use super::choice::form;
use crate::param::quantity_of;
use dacapo_lift::{Catalogue, Graph, ModuleSpec, Node, Params};
use dacapo_qos::{Value, nearest};
use dacapo_wire::graph::GraphForm;

/// Reads a graph: modules from the application to the network with ` ! ` between them, each with
/// its parameters (`name=value`) behind it.
///
/// # Errors
/// Which word is wrong, and what is allowed there.
pub fn graph_of(text: &str, catalogue: &Catalogue) -> Result<GraphForm, String> {
    if text.trim().is_empty() {
        return Ok(GraphForm::default());
    }
    let nodes = text.split('!').map(|module| node(module, catalogue));
    let graph = Graph { nodes: nodes.collect::<Result<_, _>>()? };
    Ok(form(&graph))
}

fn node(text: &str, catalogue: &Catalogue) -> Result<Node, String> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("a module is missing beside a \"!\"")?;
    let entry = catalogue.by_name(name).ok_or_else(|| unknown(name, catalogue))?;
    let mut params = Params::new();
    for word in words {
        let (number, value) = param(word, entry.spec)?;
        params.set(number, value);
    }
    Ok(Node { module: entry.spec.id, params })
}

fn unknown(name: &str, catalogue: &Catalogue) -> String {
    let names = || catalogue.entries().iter().map(|entry| entry.spec.name);
    let near = nearest(name, names()).map(|near| format!(" (did you mean \"{near}\"?)"));
    let known: Vec<&str> = names().collect();
    format!("\"{name}\" is no module{}; there are {}", near.unwrap_or_default(), known.join(", "))
}

fn param(word: &str, spec: &ModuleSpec) -> Result<(u16, u64), String> {
    let of = || spec.params.iter().map(|param| param.name).collect::<Vec<_>>().join(", ");
    let wrong = || format!("\"{word}\": \"{}\" takes name=value of: {}", spec.name, of());
    let (name, text) = word.split_once('=').ok_or_else(wrong)?;
    let at = spec.params.iter().position(|known| known.name == name).ok_or_else(wrong)?;
    let known = spec.params.get(at).ok_or_else(wrong)?;
    let value = text.parse().map_or_else(|_| Value::from_text(text), Value::Number);
    let value = quantity_of(known, &value).map_err(|error| format!("\"{word}\": {error}"))?;
    Ok((u16::try_from(at).unwrap_or(u16::MAX), value))
}

#[cfg(test)]
mod tests {
    use super::super::graph::describe;
    use super::*;

    fn read(text: &str) -> Result<GraphForm, String> {
        graph_of(text, &crate::catalogue())
    }

    #[test]
    fn what_is_printed_reads_back() {
        let catalogue = crate::catalogue();
        let form = read("segment ! sequence hold=60ms ! checksum").unwrap();
        let words = form.nodes.iter().map(|node| {
            let spec = catalogue.by_id(node.module).unwrap().spec;
            let mut params = Params::new();
            node.params.iter().for_each(|(number, value)| params.set(*number, *value));
            describe(spec, &params)
        });
        let text = words.collect::<Vec<_>>().join(" ! ");
        assert_eq!(text, "segment ! sequence hold=60ms ! checksum");
        assert_eq!(read(&text).unwrap(), form);
        assert_eq!(read(" ").unwrap(), GraphForm::default());
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_allowed_there() {
        let error = |text| read(text).unwrap_err();
        assert!(error("segmant").contains("did you mean \"segment\"?"), "{}", error("segmant"));
        assert!(error("segment ! ").contains("missing beside"));
        assert!(error("sequence hold").contains("takes name=value of: hold"));
        assert!(error("sequence depth=3").contains("takes name=value of: hold"));
        let far = error("sequence hold=60h");
        assert!(far.contains("hold=60h") && far.contains("to"), "{far}");
    }
}
