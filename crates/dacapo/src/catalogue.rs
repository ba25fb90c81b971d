//! [`Catalogue`]: the parts that exist in this build, and those that a program adds of its own.
//!
//! The only place outside its folder that names a part, in one line.

use crate::access::{AccessEntry, file, raw, test};
use crate::host;
use crate::param::{hint, list};
use crate::uri::Uri;
use dacapo_base::{Address, IP};
use dacapo_core::{Code, Error};
use dacapo_lift::{Entry, twice};
use dacapo_path::{ControllerEntry, Leads, controllers};
use dacapo_transport::entry::TransportEntry;
use dacapo_transport::{quic, shm, tcp, udp, xtp};

/// What flows are composed of: all that a host has.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// C-modules.
    pub modules: Vec<Entry>,
    /// T-modules.
    pub transports: Vec<TransportEntry>,
    /// Access modules.
    pub access: Vec<AccessEntry>,
    /// Controllers of paths.
    pub controllers: Vec<ControllerEntry>,
}

/// The parts that exist in this build.
impl Default for Catalogue {
    fn default() -> Self {
        let direct = [udp::entries(), tcp::entries(), shm::entries()];
        let above = [quic::entries(), xtp::entries(), udp::bond::entries()];
        let transports = [direct.concat(), above.concat()];
        let access = [file::entries(), test::entries(), raw::entries()];
        Self {
            modules: dacapo_modules::entries(),
            transports: transports.concat(),
            access: access.concat(),
            controllers: controllers::entries(),
        }
    }
}

impl Catalogue {
    /// What is known of its modules and transports, by which graphs are chosen and agreed.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] naming both, when two of a kind have one name or number, access
    /// modules and controllers too.
    pub fn specs(&self) -> Result<dacapo_lift::Catalogue, Error> {
        let specs = self.all_specs();
        let access: Vec<_> = self.access.iter().map(|it| (it.spec.name, it.spec.id)).collect();
        let of_access = || twice("access modules", &access);
        match specs.duplicate().or_else(of_access).or_else(|| self.same_controllers()) {
            Some(text) => Err(Error::new(Code::IllegalGraph, format!("the catalogue has {text}"))),
            None => Ok(specs),
        }
    }

    /// Two controllers of one name, in words.
    fn same_controllers(&self) -> Option<String> {
        let mut names: Vec<&str> = self.controllers.iter().map(|it| it.spec.name).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|two| two.first() == two.last())?;
        Some(format!("two controllers of one name: {:?} and {:?}", twice.first()?, twice.last()?))
    }

    /// The controller of paths that lead there, where nobody names one.
    #[must_use]
    pub fn usual_controller(&self, leads: Leads) -> Option<&ControllerEntry> {
        self.controllers.iter().find(|entry| entry.spec.usual == Some(leads))
    }

    /// The controller of this name, for paths of datagrams.
    ///
    /// # Errors
    /// [`Code::IllegalGraph`] when there is none, with those that there are, and when it stands for
    /// what a transport does itself.
    pub fn controller(&self, name: &str) -> Result<&ControllerEntry, Error> {
        let all = self.controllers.iter().filter(|entry| entry.spec.datagrams);
        all.clone().find(|entry| entry.spec.name == name).ok_or_else(|| {
            let mut names: Vec<&str> = all.map(|entry| entry.spec.name).collect();
            names.sort_unstable();
            let text = format!(
                "\"{name}\" is no controller for paths of datagrams{}; there are: {}",
                hint(name, &names),
                list(&names)
            );
            Error::new(Code::IllegalGraph, text)
        })
    }

    /// The address that a text means: `SCHEME:TEXT` where a transport has the scheme, else one of
    /// IP, as [`host::resolve`] takes it.
    ///
    /// # Errors
    /// [`Code::Unreachable`] with what is wrong.
    pub fn resolve(&self, text: &str) -> Result<Address, Error> {
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        match self.schemes().any(|it| it == scheme) {
            true => self.read(scheme, rest),
            false => Ok(host::resolve(text)?.into()),
        }
    }

    /// Where the core is that serves a session.
    ///
    /// # Errors
    /// [`Code::Unreachable`] with what is wrong, also when no transport has the scheme.
    pub fn address_of(&self, uri: &Uri) -> Result<Address, Error> {
        match &uri.scheme {
            Some(scheme) => self.read(scheme, &uri.host),
            None => Ok(host::resolve(&uri.authority())?.into()),
        }
    }

    /// The schemes of addresses that are none of IP.
    fn schemes(&self) -> impl Iterator<Item = &'static str> {
        self.transports.iter().map(|entry| entry.spec.scheme).filter(|scheme| *scheme != IP)
    }

    fn read(&self, scheme: &str, text: &str) -> Result<Address, Error> {
        let unreachable = |why| Error::new(Code::Unreachable, format!("{scheme}:{text}: {why}"));
        let nobody = || format!("no transport here has addresses of {scheme}");
        let known = self.schemes().find(|it| *it == scheme);
        let known = known.ok_or_else(|| unreachable(nobody()))?;
        Address::read(known, text).map_err(|error| unreachable(error.to_string()))
    }

    /// The access module of this name.
    ///
    /// # Errors
    /// There is none: in words, and what there is.
    pub fn access(&self, name: &str) -> Result<&AccessEntry, (String, String)> {
        let found = self.access.iter().find(|entry| entry.spec.name == name);
        found.ok_or_else(|| {
            let mut names: Vec<&str> = self.access.iter().map(|entry| entry.spec.name).collect();
            names.sort_unstable();
            let text = format!("\"{name}\" is no access module{}", hint(name, &names));
            (text, list(&names))
        })
    }

    pub(crate) fn all_specs(&self) -> dacapo_lift::Catalogue {
        let transports = self.transports.iter().map(|entry| entry.spec).collect();
        dacapo_lift::Catalogue::new(self.modules.clone()).with_transports(transports)
    }
}

/// What is known of the modules and transports of this build.
#[must_use]
pub fn catalogue() -> dacapo_lift::Catalogue {
    Catalogue::default().all_specs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_wire() {
        let all = catalogue();
        assert_eq!(all.duplicate(), None);
        let known: Vec<_> = all.transports().iter().map(|spec| (spec.id, spec.name)).collect();
        assert_eq!(
            known[..4],
            [(1, "udp"), (6, "udp-multicast"), (3, "tcp"), (10, "tcp-multicast")]
        );
        assert_eq!(known[4..7], [(9, "shm"), (7, "quic"), (8, "quic-datagram")]);
        assert_eq!(known[7..9], [(11, "xtp"), (12, "xtp-datagram")]);
        assert_eq!(known[9..], [(13, "bond"), (14, "bond-backup")]);
    }

    #[test]
    fn an_address_is_one_of_ip_or_of_a_scheme_that_is_here() {
        let all = Catalogue::default();
        assert_eq!(all.resolve("127.0.0.1:7").unwrap().to_string(), "127.0.0.1:7");
        for text in ["foo:x", "localhost:http", "[::1]:x"] {
            let error = all.resolve(text).unwrap_err();
            assert!(error.text.starts_with(text) && error.text.contains("HOST:PORT"), "{error}");
        }
        let error = all.address_of(&"dacapo+foo://x/movie".parse().unwrap()).unwrap_err();
        assert_eq!(error.text, "foo:x: no transport here has addresses of foo");
    }

    #[test]
    fn two_of_one_name_or_number_are_an_error_that_names_both() {
        let mut all = Catalogue::default();
        all.modules.push(*catalogue().by_name("segment").unwrap());
        let error = all.specs().unwrap_err();
        assert!(error.text.contains("\"segment\" (number 0x0001) and \"segment\""), "{error}");
        let mut all = Catalogue::default();
        all.transports.extend(quic::entries());
        let error = all.specs().unwrap_err();
        let both = "two transports of one name or number: \"quic\" (number 0x0007) and \"quic\"";
        assert!(error.text.contains(both), "{error}");
        let mut all = Catalogue::default();
        all.access.extend(raw::entries());
        let error = all.specs().unwrap_err();
        let both = "two access modules of one name or number: \"raw\" (number 0x0003) and \"raw\"";
        assert!(error.text.contains(both), "{error}");
        let mut all = Catalogue::default();
        all.controllers.push(controllers::below::entry());
        let error = all.specs().unwrap_err();
        let both = "the catalogue has two controllers of one name: \"below\" and \"below\"";
        assert!(error.text.contains(both), "{error}");
        let (text, allowed) = all.access("fil").unwrap_err();
        assert!(text.contains("did you mean \"file\"?") && allowed.contains("\"raw\""), "{text}");
    }

    #[test]
    fn a_controller_is_named_or_an_error_says_which_there_are() {
        let all = Catalogue::default();
        assert_eq!(all.controller("reserved").unwrap().spec.name, "reserved");
        for (name, text) in [("reservd", "did you mean \"reserved\"?"), ("below", "there are: ")] {
            let error = all.controller(name).unwrap_err();
            let is_named = error.text.contains(name) && error.text.contains("\"reserved\"");
            assert!(is_named && error.text.contains(text), "{error}");
        }
    }

    #[test]
    fn flows_are_waited_for_above_the_port_of_control() {
        let all = catalogue();
        let above = |control: u16| {
            let ports = all.transports().iter().filter_map(|spec| Some((spec.name, spec.port?)));
            let above = ports.filter(|(_, port)| port.above > 0);
            above.map(|(name, port)| (name, port.beside(control))).collect::<Vec<_>>()
        };
        let ports = [29_980, 29_981, 29_982, 29_983].map(Some);
        let names = ["quic", "quic-datagram", "xtp", "xtp-datagram"];
        assert_eq!(above(19_980).iter().map(|it| it.0).collect::<Vec<_>>(), names);
        assert_eq!(above(19_980).iter().map(|it| it.1).collect::<Vec<_>>(), ports);
        let at_the_end = above(55_535).iter().map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(at_the_end, [Some(65_535), None, None, None]);
    }
}
