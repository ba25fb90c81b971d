//! A transfer by plain sockets: the program that `dacapo bench transfer` stands beside.
//!
//! ```text
//!   plain send   read 60 KiB, hash, write    ->  TCP  ->   read, hash, write file   plain recv
//!                length first                              digest back
//! ```

use crate::exit::{Exit, Failure};
use crate::output::line;
use dacapo_sys::process::cpu_time;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

/// Bytes of one read, as `dacapo send` has them.
const READ_LEN: usize = dacapo::transfer::DATA_LEN;

/// Runs an end: `recv:FILE` or `send:HOST:PORT:FILE`.
pub fn run(role: &str) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::run_time("plain transfer", error);
    match role.split_once(':') {
        Some(("recv", file)) => recv(Path::new(file)).map_err(failed)?,
        Some(("send", rest)) => {
            let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "send:HOST:PORT:FILE");
            // The file may have a colon in its name, and need not begin with a slash.
            let mut parts = rest.splitn(3, ':');
            let (Some(host), Some(port), Some(file)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(failed(wrong()));
            };
            send(&format!("{host}:{port}"), Path::new(file)).map_err(failed)?;
        }
        _ => return Err(Failure::run_time("plain transfer", "neither recv nor send")),
    }
    Ok(Exit::Success)
}

fn recv(path: &Path) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    line(json!({ "address": listener.local_addr()?.to_string() }));
    let (mut stream, _) = listener.accept()?;
    let mut len = [0; 8];
    stream.read_exact(&mut len)?;
    let mut left = u64::from_be_bytes(len);
    let mut file = File::create(path)?;
    let (mut buffer, mut hash) = (vec![0; READ_LEN], Sha256::new());
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let Some(into) = buffer.get_mut(..most) else { break };
        let read = stream.read(into)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        hash.update(bytes);
        file.write_all(bytes)?;
        left -= read as u64;
    }
    stream.write_all(&hash.finalize())?;
    line(json!({ "cpu_seconds": cpu_time().as_secs_f64() }));
    Ok(())
}

fn send(addr: &str, path: &Path) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr)?;
    let began = Instant::now();
    let mut file = File::open(path)?;
    stream.write_all(&file.metadata()?.len().to_be_bytes())?;
    let (mut buffer, mut hash) = (vec![0; READ_LEN], Sha256::new());
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        let bytes = buffer.get(..read).unwrap_or_default();
        hash.update(bytes);
        stream.write_all(bytes)?;
    }
    let mut digest = [0; 32];
    stream.read_exact(&mut digest)?;
    let sent: [u8; 32] = hash.finalize().into();
    if sent != digest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the hashes differ"));
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_time().as_secs_f64());
    line(json!({ "seconds": seconds, "cpu_seconds": cpu }));
    Ok(())
}
