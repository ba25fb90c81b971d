//! Explanations as people read them.
//!
//! `Display` of [`Explanation`] and its parts; its picture is in `explanation.rs`.

use super::explanation::{
    Asked, Assumed, CostShare, Expected, Explanation, Forced, Met, Part, Standing,
};
use super::rejected::{Edit, Rejected, Violation, Why};
use super::wording::{self, Side, rounded};
use crate::units::{format_duration, format_rate, format_ratio, format_size};
use std::fmt;

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enforced => "enforced",
            Self::Admitted => "admitted",
            Self::Predicted => "predicted",
            Self::Monitored => "not promised",
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.graph, self.cost)?;
        writeln!(f, "why")?;
        let width = self.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
        for part in &self.parts {
            writeln!(f, "  {:width$}  {part}", part.name)?;
        }
        writeln!(f, "expected: {}", self.expected)?;
        for (index, met) in self.attributes.iter().enumerate() {
            let lead = if index == 0 { "asked\n  " } else { "  " };
            writeln!(f, "{lead}{met}")?;
        }
        for (index, rejected) in self.rejected.iter().enumerate() {
            let lead = if index == 0 { "rejected\n  " } else { "  " };
            writeln!(f, "{lead}{rejected}")?;
        }
        write!(f, "assumed of the path: {}", self.assumed)
    }
}

impl fmt::Display for Part {
    /// What forces it, and its parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = |asked: &[Asked]| asked.iter().map(|a| a.text.clone()).collect::<Vec<_>>();
        match &self.forced_by {
            Forced::Pinned => f.write_str("pinned")?,
            Forced::Nothing if self.function == "transport" => {
                f.write_str("nothing asks for more; it is the cheapest")?;
            }
            Forced::Nothing => f.write_str("nothing forces it; it is cheapest with it")?,
            Forced::Untold => f.write_str("the weights of many attributes together")?,
            Forced::Each(asked) => f.write_str(&texts(asked).join(", "))?,
            Forced::Together(asked) => {
                write!(f, "{} (each is enough)", wording::and(&texts(asked)))?;
            }
        }
        if self.params.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.params.join(", "))
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duration = |ns: u64| format_duration(rounded(ns, Side::Up));
        let rate = format_rate(rounded(self.rate_bps, Side::Down));
        write!(f, "{rate}, delay {}", duration(self.delay_ns))?;
        if let Some(ns) = self.playout_ns {
            write!(f, ", shown at {}", format_duration(ns))?;
        }
        let loss = format_ratio(rounded(self.loss_ppb, Side::Up));
        write!(f, ", jitter {}, loss {loss}", duration(self.jitter_ns))?;
        match self.late_ppb {
            0 => Ok(()),
            ppb => write!(f, ", later than is of use {}", format_ratio(rounded(ppb, Side::Up))),
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.asked, self.given)?;
        if let Some(spare) = &self.spare {
            write!(f, ", {spare}")?;
        }
        write!(f, " ({})", self.standing)
    }
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, datagrams of {}, delay {}, jitter {}, loss {}",
            format_rate(self.rate_bps),
            format_size(self.datagram_len.into()),
            format_duration(self.delay_ns),
            format_duration(self.jitter_ns),
            format_ratio(self.loss_ppb)
        )?;
        if self.loss_ppb == 0 {
            return Ok(());
        }
        let (whole, thousandths) = (self.burst_milli / 1_000, self.burst_milli % 1_000);
        let digits = format!("{thousandths:03}");
        match digits.trim_end_matches('0') {
            "" => write!(f, " in runs of {whole}"),
            digits => write!(f, " in runs of {whole}.{digits}"),
        }
    }
}

impl fmt::Display for CostShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of a core", format_ratio(rounded(self.cpu_ppb, Side::Up)))?;
        if self.receivers > 1 {
            write!(f, " for {} receivers", self.receivers)?;
        }
        write!(f, " ({} costs)", self.source)
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Without { module } => write!(f, "without {module}"),
            Self::Instead { of, module } => write!(f, "{module} instead of {of}"),
            Self::Tuned { module } => f.write_str(module),
            Self::Over { transport } => write!(f, "over {transport}"),
            Self::Unpinned => f.write_str("without pins"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.given.as_str() {
            wording::NOT_KEPT => write!(f, "{} is {}", self.asked, wording::NOT_KEPT),
            given => write!(f, "{} is not met ({given})", self.asked),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.edit, self.graph)?;
        let ppm = self.cost_ppm.unwrap_or(0);
        let cost = match (ppm, ppm.unsigned_abs().div_ceil(10_000)) {
            (0, _) => "costs the same".to_owned(),
            (1.., percent) => format!("costs {percent} % more"),
            (_, percent) => format!("costs {percent} % less"),
        };
        match &self.why {
            Why::Breaks(violations) => {
                let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(", "))
            }
            Why::Illegal(reason) => f.write_str(reason),
            Why::Dearer | Why::Nothing => f.write_str(&cost),
            Why::Weighs => write!(f, "{cost}, and is worse in what has a weight"),
            Why::Equal => write!(f, "{cost}; of equals one is taken"),
        }
    }
}
