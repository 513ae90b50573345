//! Free ports on the loopback interface.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::ops::Range;

use anyhow::ensure;

/// Where the kernel says which ports it gives to outgoing connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Where that cannot be read, the usual first one of them on Linux.
const USUAL_FIRST_EPHEMERAL: u16 = 32_768;
const LOWEST: u16 = 10_000;

/// Ports that nobody uses now, all different.
///
/// They lie below those that the kernel gives to outgoing connections: while a
/// killed API server is away, a client that tries to reach it must not be given
/// its port as its own.
///
/// # Errors
/// If there are not enough.
pub(crate) fn free<const N: usize>() -> anyhow::Result<[u16; N]> {
    let range = range(&fs::read_to_string(EPHEMERAL).unwrap_or_default());
    let size = u64::from(range.end - range.start);
    let mut ports = [0; N];
    // All are held until all are found.
    let mut held = Vec::new();
    for _ in 0..10_000 {
        let Some(port) = ports.get_mut(held.len()) else { break };
        let random = RandomState::new().build_hasher().finish() % size;
        let candidate = range.start + u16::try_from(random)?;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", candidate)) {
            *port = candidate;
            held.push(listener);
        }
    }
    ensure!(held.len() == N, "no {N} free ports in {range:?}");
    Ok(ports)
}

fn range(ephemeral: &str) -> Range<u16> {
    let first = ephemeral.split_whitespace().next().and_then(|first| first.parse().ok());
    let first: u16 = first.unwrap_or(USUAL_FIRST_EPHEMERAL);
    // Some machines give out nearly all ports; then there is no better place.
    if first > LOWEST + 1_000 { LOWEST..first } else { LOWEST..USUAL_FIRST_EPHEMERAL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_free_and_different() {
        let ports = free::<8>().unwrap();
        let listeners = ports.map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        assert_eq!(listeners.len(), 8);
    }

    #[test]
    fn they_lie_below_those_of_outgoing_connections() {
        assert_eq!(range("32768\t60999\n"), 10_000..32_768);
        assert_eq!(range("20000 65535"), 10_000..20_000);
        assert_eq!(range("1024 65535"), 10_000..32_768);
        assert_eq!(range(""), 10_000..32_768);
    }
}
