//! [`Iperf3`]: iperf3 as people use it, over TCP. How a peer is added: this file, a line in
//! `peers/mod.rs`, and its row in an experiment.

use super::{Order, Peer, WARM_UP_S, words};
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};
use crate::run::machine;

/// One stream, in writes of its usual 128 KiB.
pub struct Iperf3;

impl Peer for Iperf3 {
    fn missing(&self, _rig: &Rig) -> Option<String> {
        let text = "iperf3 is not there: apt-get install iperf3";
        machine::output("iperf3", &["--version"]).is_none().then(|| text.to_owned())
    }

    fn version(&self, _rig: &Rig) -> Option<String> {
        machine::version("iperf3", &["--version"])
    }

    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "5201"));
        let (size, seconds) = (order.size.to_string(), rig.seconds.ceil().to_string());
        let near = ["iperf3", "-c", host, "-p", port, "-l", &size, "-t", &seconds];
        let warm_up = WARM_UP_S.ceil().to_string();
        Pair {
            near: words(near.into_iter().chain(["-O", &warm_up, "--json"])),
            far: words(["iperf3", "-s", "-1", "-p", port, "--forceflush"]),
            is_ready: |line| line.contains("Server listening"),
            is_near_alone: true,
        }
    }

    fn sample(&self, _order: &Order, reports: &Reports, rig: &Rig) -> Result<Sample, String> {
        let rate = reports.number("near/end/sum_received/bits_per_second")?;
        // Its percentages are of the time that it measures; what the kernel accounts is of all.
        let seconds = rig.seconds.ceil() + WARM_UP_S.ceil();
        let cpu = (reports.near_usage.cpu_s + reports.far_usage.cpu_s) / seconds;
        let sample = Sample::default().with("gbit_per_s", rate / 1e9);
        Ok(sample.with("cpu_s_per_gb", cpu / (rate / 8.0) * 1e9).with("loss_percent", 0.0))
    }
}
