//! Both ends of `bench copies`: units in batches, after each of which the end that sends waits for
//! a word of the other, so that nothing is lost when that one is slow.

use crate::cli::{CopiesEndArgs, UnitWay};
use crate::exit::{Exit, Failure};
use crate::net::lossless_flow;
use crate::output;
use dacapo::{Creator, Endpoint, Error, FlowReceiver};
use serde_json::json;
use std::hint::black_box;
use std::io::Read;
use std::time::Duration;

const NAME: &str = "bench-copies";

/// Units between two words.
const BATCH: u32 = 4;

/// After this a unit was lost, and it ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of a unit.
pub const UNIT_LEN: usize = 60 << 10;

/// What is measured over each transport.
pub const WAYS: [UnitWay; 5] =
    [UnitWay::Send, UnitWay::Pieces, UnitWay::Slice, UnitWay::Into, UnitWay::Recv];

/// The transports to one other end.
pub fn transports() -> Vec<&'static str> {
    let catalogue = dacapo::catalogue();
    // Of bonds one end listens at several addresses.
    let all = catalogue.transports().iter().filter(|spec| !spec.groups && spec.spread.is_none());
    all.map(|spec| spec.name).collect()
}

/// The session: `down` is sent by the near end, `up` to it.
fn session_file(over: &str) -> String {
    let flow = |name: &str, from: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nsource = {{ raw = true }}\n\
             unit_max = \"{UNIT_LEN} B\"\ntransport = \"{over}\"\n\
             attributes = {{ order = \"ordered\" }}\n"
        )
    };
    let (down, up) = (flow("down", "participant"), flow("up", "creator"));
    let ask = lossless_flow("ask", "participant", 64);
    let answer = lossless_flow("answer", "creator", 64);
    format!("[session]\nname = \"{NAME}\"\n{down}{up}{ask}{answer}")
}

/// Is an end.
pub fn run_end(args: &CopiesEndArgs) -> Result<Exit, Failure> {
    let failed = |error: Error| Failure::core("bench copies", &error);
    match (&args.address, args.units.unwrap_or(0)) {
        (None, _) => answer(&args.over).map_err(failed)?,
        (Some(_), units) if args.way == UnitWay::Bare => copy(units),
        (Some(address), units) => {
            end_in_time();
            ask(address, args.way, units / BATCH).map_err(failed)?;
        }
    }
    Ok(Exit::Success)
}

/// Ends this process when a unit was lost, for which it would wait for ever.
fn end_in_time() {
    std::thread::spawn(|| {
        std::thread::sleep(PATIENCE);
        eprintln!("dacapo-eval: a unit has not come");
        std::process::exit(1);
    });
}

/// Each unit once, and nothing else.
fn copy(units: u32) {
    let (unit, mut into) = (vec![7_u8; UNIT_LEN], vec![0; UNIT_LEN]);
    for _ in 0..units {
        into.copy_from_slice(black_box(&unit));
        black_box(&mut into);
    }
}

fn answer(over: &str) -> Result<(), Error> {
    let creator = dacapo::create(session_file(over))?;
    creator.listen("127.0.0.1:0")?;
    let listening = creator.endpoint().listening();
    let addresses: Vec<String> = listening.iter().map(ToString::to_string).collect();
    std::thread::spawn(|| {
        // What comes is of no interest, and an error is an end.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    output::line(json!({ "event": "listening", "addresses": addresses }));
    loop {
        answer_one(&creator)?;
    }
}

fn answer_one(creator: &Creator) -> Result<(), Error> {
    let session = creator.accept()?;
    let (mut ask, mut answer) = (session.receiver("ask")?, session.sender("answer")?);
    let (mut down, mut up) = (session.receiver("down")?, session.sender("up")?);
    let (unit, Some(asked)) = (vec![7; UNIT_LEN], ask.recv()?) else { return Ok(()) };
    let (is_down, batches) = question(&asked);
    for _ in 0..batches {
        if is_down {
            (0..BATCH).try_for_each(|_| down.recv_with(|_| ()).map(drop))?;
            answer.send(&[1])?;
        } else {
            (0..BATCH).try_for_each(|_| up.send(&unit))?;
            ask.recv()?;
        }
    }
    // The other end closes once it has all.
    session.wait_end_timeout(PATIENCE)?;
    Ok(())
}

/// Whether units are sent to the far end, and how many batches.
fn question(asked: &[u8]) -> (bool, u32) {
    let (is_down, batches) = asked.split_first().unwrap_or((&0, &[]));
    (*is_down != 0, batches.try_into().map_or(0, u32::from_be_bytes))
}

fn ask(address: &str, way: UnitWay, batches: u32) -> Result<(), Error> {
    let endpoint = Endpoint::new()?;
    let session = endpoint.connect(&format!("dacapo://{address}/{NAME}"))?;
    session.activate()?;
    let (mut ask, mut answer) = (session.sender("ask")?, session.receiver("answer")?);
    let (mut down, mut up) = (session.sender("down")?, session.receiver("up")?);
    let is_down = way == UnitWay::Send;
    ask.send(&[&[u8::from(is_down)], &batches.to_be_bytes()[..]].concat())?;
    let mut unit = vec![7; UNIT_LEN];
    for _ in 0..batches {
        if is_down {
            (0..BATCH).try_for_each(|_| down.send(&unit))?;
            answer.recv()?;
        } else {
            (0..BATCH).try_for_each(|_| take(&mut up, way, &mut unit))?;
            ask.send(&[1])?;
        }
    }
    session.close()?;
    Ok(())
}

fn take(up: &mut FlowReceiver, way: UnitWay, unit: &mut [u8]) -> Result<(), Error> {
    match way {
        UnitWay::Pieces => {
            let len = up.recv_with(|unit| unit.pieces().map(<[u8]>::len).sum::<usize>())?;
            debug_assert_eq!(len, Some(UNIT_LEN));
        }
        UnitWay::Slice => drop(up.recv_with(|unit| black_box(&unit[..]).len())?),
        UnitWay::Into => drop(up.recv_into(unit)?),
        _ => {
            if let Some(unit) = up.recv()? {
                up.give_back(unit);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_pass_every_way_over_every_transport() {
        for over in transports() {
            let creator = dacapo::create(session_file(over)).unwrap();
            creator.listen("127.0.0.1:0").unwrap();
            let address = creator.endpoint().listening()[0].to_string();
            let far = std::thread::spawn(move || {
                WAYS.iter().for_each(|_| answer_one(&creator).unwrap());
            });
            for way in WAYS {
                ask(&address, way, 2).unwrap();
            }
            far.join().unwrap();
        }
    }

    #[test]
    fn a_question_that_is_none_asks_for_nothing() {
        assert_eq!(question(&[1, 0, 0, 0, 9]), (true, 9));
        assert_eq!((question(&[]), question(&[0, 1])), ((false, 0), (false, 0)));
    }
}
