//! [`Graph`]: the C-modules of one epoch, as data; and the [`Catalogue`] that knows the modules.

use crate::runner::{failure, guarded};
use crate::{Meter, Module, ModuleSpec, Properties, Runner, Setup, TransportSpec};
use dacapo_packet::Layout;

/// The values of a module's parameters, by their number in its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    values: Vec<(u16, u64)>,
}

impl Params {
    /// No values: every parameter has its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets parameter `number`; the last value counts.
    pub fn set(&mut self, number: u16, value: u64) {
        self.values.retain(|(known, _)| *known != number);
        self.values.push((number, value));
        self.values.sort_unstable();
    }

    /// What was set, in the order of the numbers.
    #[must_use]
    pub fn values(&self) -> &[(u16, u64)] {
        &self.values
    }

    /// The value of the parameter with this name: as set, or its default; 0 for an unknown name.
    #[must_use]
    pub fn value(&self, spec: &ModuleSpec, name: &str) -> u64 {
        let Some(number) = spec.params.iter().position(|param| param.name == name) else {
            return 0;
        };
        spec.value_of(&self.values, number as u16)
    }
}

/// One module of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The module's number on the wire.
    pub module: u16,
    /// Its parameters.
    pub params: Params,
}

/// The modules of one epoch, from the application (first) to the network (last).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The modules.
    pub nodes: Vec<Node>,
}

/// What the catalogue knows of a module: its facts and how to make one.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The static facts.
    pub spec: &'static ModuleSpec,
    /// Makes a module for an epoch; the parameters were checked against the spec.
    pub build: fn(&Params, &Setup) -> Box<dyn Module>,
}

impl Entry {
    /// Makes a module.
    ///
    /// # Errors
    /// What it says when it panics, and its name.
    fn make(&self, params: &Params, setup: &Setup) -> Result<Box<dyn Module>, String> {
        let made = guarded(|| (self.build)(params, setup));
        made.map_err(|said| failure(self.spec.name, &said))
    }
}

/// A graph that is ready to run.
pub struct Built {
    /// The running modules, in the order of the graph.
    pub modules: Vec<Box<dyn Module>>,
    /// Where units and segments lie.
    pub layout: Layout,
    /// What their time is taken with.
    pub meter: Option<Meter>,
}

impl Built {
    /// Modules that nobody times.
    #[must_use]
    pub fn new(modules: Vec<Box<dyn Module>>, layout: Layout) -> Self {
        Self { modules, layout, meter: None }
    }

    /// What runs them.
    #[must_use]
    pub fn into_runner(self) -> Runner {
        let mut runner = Runner::new(self.modules);
        runner.set_meter(self.meter);
        runner
    }
}

/// The modules and transports that exist in this core.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    transports: Vec<&'static TransportSpec>,
}

impl Catalogue {
    /// A catalogue of these modules. Where two have the same number, the first counts.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, transports: Vec::new() }
    }

    /// The same with these transports, in place of those that it had.
    #[must_use]
    pub fn with_transports(mut self, transports: Vec<&'static TransportSpec>) -> Self {
        self.transports = transports;
        self
    }

    /// All transports, in the order given.
    #[must_use]
    pub fn transports(&self) -> &[&'static TransportSpec] {
        &self.transports
    }

    /// The transport with this number.
    #[must_use]
    pub fn transport(&self, id: u16) -> Option<&'static TransportSpec> {
        self.transports.iter().copied().find(|spec| spec.id == id)
    }

    /// The transport with this name.
    #[must_use]
    pub fn transport_by_name(&self, name: &str) -> Option<&'static TransportSpec> {
        self.transports.iter().copied().find(|spec| spec.name == name)
    }

    /// What a transport gives; nothing where nobody knows it.
    #[must_use]
    pub fn below(&self, transport: u16) -> Properties {
        let spec = self.transport(transport);
        spec.map_or(Properties::NONE, |spec| Properties::of(spec.properties))
    }

    /// What holds above the modules of a graph on a transport, each by its number and the values
    /// of its parameters; those that nobody knows change nothing.
    #[must_use]
    pub fn above<'a>(
        &self,
        transport: u16,
        modules: impl DoubleEndedIterator<Item = (u16, &'a [(u16, u64)])>,
    ) -> Properties {
        let known = modules.rev().filter_map(|(id, values)| Some((self.by_id(id)?.spec, values)));
        known.fold(self.below(transport), |below, (spec, values)| spec.above(values, below))
    }

    /// The same without the modules and transports that `keep` does not want.
    #[must_use]
    pub fn only(
        &self,
        keep_module: impl Fn(u16) -> bool,
        keep_transport: impl Fn(u16) -> bool,
    ) -> Self {
        let entries = self.entries.iter().filter(|entry| keep_module(entry.spec.id));
        let transports = self.transports.iter().filter(|spec| keep_transport(spec.id));
        Self { entries: entries.copied().collect(), transports: transports.copied().collect() }
    }

    /// The same with one module more.
    #[must_use]
    pub fn with_module(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Two modules, or two transports, of one name or one number: of such a pair only the first
    /// can be had. In words, naming both.
    #[must_use]
    pub fn duplicate(&self) -> Option<String> {
        let modules = self.entries.iter().map(|entry| (entry.spec.name, entry.spec.id));
        let transports = self.transports.iter().map(|spec| (spec.name, spec.id));
        twice("modules", &modules.collect::<Vec<_>>())
            .or_else(|| twice("transports", &transports.collect::<Vec<_>>()))
    }

    /// All modules, in the order given.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The module with this number.
    #[must_use]
    pub fn by_id(&self, id: u16) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.id == id)
    }

    /// The module with this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.spec.name == name)
    }

    /// Where units and segments of a graph lie: `path_head` bytes of the path's own header before
    /// every packet, and at most `datagram_len` bytes per packet. `None` for an unknown module or
    /// when nothing is left for the payload.
    #[must_use]
    pub fn layout(&self, graph: &Graph, path_head: usize, datagram_len: usize) -> Option<Layout> {
        let (mut head, mut tail, mut segmented) = (path_head, 0, false);
        for node in &graph.nodes {
            let spec = self.by_id(node.module)?.spec;
            head += usize::from(spec.head);
            tail += usize::from(spec.tail);
            segmented |= spec.segments;
        }
        let segment = datagram_len.checked_sub(head + tail).filter(|&left| left > 0)?;
        Some(Layout { head, tail, segment, segmented })
    }

    /// Makes the modules of a graph that [`crate::check`] has passed; `None` where it would not,
    /// or where one panics.
    #[must_use]
    pub fn build(
        &self,
        graph: &Graph,
        path_head: usize,
        datagram_len: usize,
        unit_len_max: usize,
    ) -> Option<Built> {
        self.try_build(graph, path_head, datagram_len, unit_len_max).ok().flatten()
    }

    /// The same, for who wants to know of a panic.
    ///
    /// # Errors
    /// Which module panics while it is made, and what it says.
    pub fn try_build(
        &self,
        graph: &Graph,
        path_head: usize,
        datagram_len: usize,
        unit_len_max: usize,
    ) -> Result<Option<Built>, String> {
        let Some(layout) = self.layout(graph, path_head, datagram_len) else { return Ok(None) };
        let (mut head_below, mut tail_below) = (layout.head, layout.tail);
        let mut modules = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let Some(entry) = self.by_id(node.module) else { return Ok(None) };
            let setup = Setup { layout, head_below, tail_below, unit_len_max };
            modules.push(entry.make(&node.params, &setup)?);
            head_below -= usize::from(entry.spec.head);
            tail_below -= usize::from(entry.spec.tail);
        }
        Ok(Some(Built::new(modules, layout)))
    }
}

/// The first two of a kind that have the same name or number, in words.
#[must_use]
pub fn twice(kind: &str, all: &[(&str, u16)]) -> Option<String> {
    let mut pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, one)| all.iter().skip(at + 1).map(move |two| (one, two)));
    let (one, two) = pairs.find(|(one, two)| one.0 == two.0 || one.1 == two.1)?;
    let named = |(name, id): &(&str, u16)| format!("\"{name}\" (number {id:#06x})");
    Some(format!("two {kind} of one name or number: {} and {}", named(one), named(two)))
}
